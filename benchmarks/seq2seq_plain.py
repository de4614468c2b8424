"""A straightforward encoder-decoder with attention, as plain loops over torch modules.

A bidirectional LSTM over packed sequences, additive attention whose keys are computed once, an LSTM
decoder without input feeding, greedy search, and a beam on tensors that repeats the memory for every
hypothesis. It is the baseline for search: the same model, written with care but without optimizations.
"""

from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD, BEGIN, END = 0, 2, 3
NEVER = -1e9


class Encoded(NamedTuple):
    """The memory and the initial state of the decoder."""

    values: Tensor  # (B, S, 2 H)
    keys: Tensor  # (B, S, H)
    padding: Tensor  # (B, S)
    state: tuple[Tensor, Tensor]  # each (1, B, H)


@final
class PlainSeq2Seq(nn.Module):
    """Encoder, attention, decoder and both searches."""

    def __init__(self, vocabulary: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.source = nn.Embedding(vocabulary, embedding, PAD)
        self.target = nn.Embedding(vocabulary, embedding, PAD)
        self.encoder = nn.LSTM(embedding, hidden, batch_first=True, bidirectional=True)
        self.first_hidden = nn.Linear(2 * hidden, hidden)
        self.first_memory = nn.Linear(2 * hidden, hidden)
        self.decoder = nn.LSTM(embedding, hidden, batch_first=True)
        self.key = nn.Linear(2 * hidden, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.combine = nn.Linear(3 * hidden, hidden)
        self.output = nn.Linear(hidden, vocabulary)

    def encode(self, tokens: Tensor, lengths: Tensor) -> Encoded:
        """Encode a batch."""
        packed = pack_padded_sequence(
            self.source(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        outputs, (hidden, memory) = self.encoder(packed)
        values, _ = pad_packed_sequence(outputs, batch_first=True)
        first = torch.tanh(self.first_hidden(torch.cat([hidden[0], hidden[1]], 1)))
        start = self.first_memory(torch.cat([memory[0], memory[1]], 1))
        padding = (tokens == PAD)[:, : values.shape[1]]
        return Encoded(values, self.key(values), padding, (first[None], start[None]))

    def decode(
        self, tokens: Tensor, state: tuple[Tensor, Tensor], encoded: Encoded
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the scores of the next token, and the next state."""
        hidden, state = self.decoder(self.target(tokens), state)
        query = self.query(hidden)
        fits = self.score(torch.tanh(encoded.keys[:, None] + query[:, :, None])).squeeze(-1)
        weights = fits.masked_fill(encoded.padding[:, None], NEVER).softmax(-1)
        both = torch.cat([hidden, weights @ encoded.values], -1)
        return self.output(torch.tanh(self.combine(both))), state

    @torch.inference_mode()
    def greedy(self, tokens: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """Return the outputs of greedy search: (B, T)."""
        encoded = self.encode(tokens, lengths)
        state, written = encoded.state, []
        last = torch.full((len(tokens), 1), BEGIN)
        done = torch.zeros(len(tokens), dtype=torch.bool)
        for _ in range(max_length):
            scores, state = self.decode(last, state, encoded)
            last = scores[:, -1].argmax(-1, keepdim=True)
            written.append(last)
            done |= last[:, 0] == END
            if done.all():
                break
        return torch.cat(written, 1)

    @torch.inference_mode()
    def beam(self, tokens: Tensor, lengths: Tensor, max_length: int, width: int) -> Tensor:
        """Return the outputs of beam search with the best mean log-probability: (B, T)."""
        encoded, num_items = self.encode(tokens, lengths), len(tokens)
        wide = Encoded(
            encoded.values.repeat_interleave(width, 0),
            encoded.keys.repeat_interleave(width, 0),
            encoded.padding.repeat_interleave(width, 0),
            (
                encoded.state[0].repeat_interleave(width, 1),
                encoded.state[1].repeat_interleave(width, 1),
            ),
        )
        state, last = wide.state, torch.full((num_items * width, 1), BEGIN)
        scores = torch.full((num_items, width), NEVER)
        scores[:, 0] = 0
        written = torch.zeros(num_items, width, 0, dtype=torch.long)
        done = torch.zeros(num_items, width, dtype=torch.bool)
        counts = torch.zeros(num_items, width)
        first = (torch.arange(num_items) * width)[:, None]
        for _ in range(max_length):
            following, state = self.decode(last, state, wide)
            log_probs = following[:, -1].log_softmax(-1).view(num_items, width, -1)
            log_probs = log_probs.masked_fill(done[..., None], NEVER)
            log_probs[..., PAD] = torch.where(done, 0.0, torch.tensor(NEVER))
            vocabulary = log_probs.shape[-1]
            scores, places = (scores[..., None] + log_probs).view(num_items, -1).topk(width, 1)
            parents, chosen = places // vocabulary, places % vocabulary
            index = parents[..., None].expand(-1, -1, written.shape[2])
            written = torch.cat([written.gather(1, index), chosen[..., None]], 2)
            was_done = done.gather(1, parents)
            counts = counts.gather(1, parents) + (~was_done).float()
            done = was_done | (chosen == END)
            rows = (first + parents).view(-1)
            state = (state[0][:, rows], state[1][:, rows])
            last = chosen.view(-1, 1)
            if done.all():
                break
        best = (scores / counts).argmax(1)
        return written[torch.arange(num_items), best]

"""The Transformer decoder: a training step next to torch's, and beam search with and without kept keys and values.

`python -m benchmarks.transformer` runs it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from foveal.attention import Memory
from foveal.decoding import beam_search
from foveal.masking import mask_from_lengths
from foveal.models import TransformerDecoderSpec, TransformerEncoderSpec
from foveal.networks import DecoderStepper, SearchStep, TransformerDecoder
from foveal.networks.encoders.transformer._positions import sinusoids

VOCABULARY = 200
BEGIN, END = 0, 1


def of_torch(spec: TransformerEncoderSpec | TransformerDecoderSpec) -> dict[str, Any]:
    """Return the arguments of torch's encoder or decoder layer with which it computes the same as ours."""
    return {
        "d_model": spec.model_size,
        "nhead": spec.num_heads,
        "dim_feedforward": 4 * spec.model_size,
        "dropout": spec.dropout,
        "activation": "gelu",
        "batch_first": True,
        "norm_first": True,
    }


class TorchDecoder(nn.Module):
    """Embeddings with sinusoidal positions, torch's decoder, and an output layer."""

    def __init__(self, spec: TransformerDecoderSpec) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, spec.model_size)
        layer = nn.TransformerDecoderLayer(**of_torch(spec))
        self.decoder = nn.TransformerDecoder(layer, spec.num_layers, nn.LayerNorm(spec.model_size))
        self.dropout = nn.Dropout(spec.dropout)
        self.output = nn.Linear(spec.model_size, VOCABULARY)

    def forward(self, tokens: Tensor, mask: Tensor, values: Tensor, places: Tensor) -> Tensor:
        """Return the scores of the next token."""
        size, longest = self.embedding.embedding_dim, tokens.shape[1]
        rows = size**0.5 * self.embedding(tokens) + sinusoids(torch.arange(longest), size)
        found = self.decoder(
            self.dropout(rows),
            values,
            tgt_mask=torch.ones(longest, longest, dtype=torch.bool).triu(1),
            tgt_key_padding_mask=~mask,
            memory_key_padding_mask=~places,
            tgt_is_causal=True,
        )
        return self.output(found)


def step(
    spec: TransformerDecoderSpec, batch: int, longest: int, *, ours: bool
) -> Callable[[], None]:
    """Return a call that does one training step of teacher forcing, with gradients of the memory."""
    torch.manual_seed(1)
    size = spec.model_size
    decoder = spec.build(VOCABULARY, size, size) if ours else TorchDecoder(spec)
    tokens = torch.randint(VOCABULARY, (batch, longest + 1))
    values = torch.randn(batch, longest, size, requires_grad=True)
    lengths = torch.randint(longest // 2, longest + 1, (2, batch))
    lengths[:, 0] = longest
    mask, places = (mask_from_lengths(each, longest) for each in lengths)
    read, targets = tokens[:, :-1], tokens[:, 1:]

    def run() -> None:
        decoder.zero_grad()
        values.grad = None
        if isinstance(decoder, TransformerDecoder):
            decoder.score(read, targets, Memory(values, places), mask).loss.sum().backward()
            return
        scores = decoder(read, mask, values, places)[mask]
        nn.functional.cross_entropy(scores, targets[mask], reduction="sum").backward()

    return run


class Prefixes(NamedTuple):
    """The state of a search without kept keys and values: a memory for each hypothesis, and its tokens."""

    memory: Memory
    tokens: Tensor  # (B, K, T)


class UncachedStepper:
    """Computes the whole prefix of every hypothesis at every step."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        self._decoder, self.num_tokens = decoder, VOCABULARY

    def start(self, memory: Memory) -> Prefixes:
        """Return the state before the first token."""
        memory = self._decoder.remember(memory)
        return Prefixes(memory, torch.zeros(len(memory.values), 1, 0, dtype=torch.long))

    def batch_size(self, state: Prefixes) -> int:
        """Return the number of items."""
        return len(state.tokens)

    @torch.no_grad()
    def step(self, state: Prefixes, tokens: Tensor) -> SearchStep:
        """Feed one token to every hypothesis."""
        written = torch.cat([state.tokens, tokens.unsqueeze(-1)], -1)
        vectors = self._decoder._teach(written.flatten(0, 1), state.memory, None, None).vectors
        log_probs = self._decoder.log_probs(vectors[:, -1:], (), state.memory)
        return SearchStep(Prefixes(state.memory, written), log_probs.view(*tokens.shape, -1), None)

    def reorder(self, state: Prefixes, parents: Tensor) -> Prefixes:
        """Select hypotheses."""
        num_items, num_before, num_tokens = state.tokens.shape
        tokens = state.tokens.gather(1, parents.unsqueeze(-1).expand(-1, -1, num_tokens))
        if parents.shape[1] == num_before:  # hypotheses of an item have the same memory
            return Prefixes(state.memory, tokens)
        first = torch.arange(num_items).unsqueeze(1) * num_before
        return Prefixes(state.memory.take((first + parents).flatten()), tokens)

    def keep(self, state: Prefixes, items: Tensor) -> Prefixes:
        """Select items."""
        num_hypotheses = state.tokens.shape[1]
        rows = items.unsqueeze(1) * num_hypotheses + torch.arange(num_hypotheses)
        return Prefixes(state.memory.take(rows.flatten()), state.tokens[items])


def search(
    spec: TransformerDecoderSpec, batch: int, length: int, beam_size: int, *, cached: bool
) -> Callable[[], Tensor]:
    """Return a beam search whose outputs never end before `length` tokens."""
    torch.manual_seed(1)
    decoder = spec.build(VOCABULARY, spec.model_size, spec.model_size).eval()
    with torch.no_grad():
        decoder.output.bias[END] = -1e4
    stepper = DecoderStepper(decoder) if cached else UncachedStepper(decoder)
    memory = Memory(torch.randn(batch, length, spec.model_size))

    def run() -> Tensor:
        with torch.no_grad():
            state = stepper.start(memory)
        found = beam_search(
            stepper, state, begin=BEGIN, end=END, max_length=length, beam_size=beam_size
        )
        return found.tokens

    return run

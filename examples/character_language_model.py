"""Predict the next character: a recurrent language model of Shakespeare (KarpathyCaptions 2015).

    hidden[t], state = LSTM(embedding of character t, state)
    p(character t+1 | characters up to t) = softmax(W hidden[t] + b)
    perplexity = exp(mean over t of -log p(character t+1 | characters up to t))

Training reads a long text in short pieces: the state is carried from one piece to the next, but the
gradient is not (truncated backpropagation through time, Mikolov et al. 2010). The last tenth of
the text is held out; the trained model reads it from beginning to end with one state.

Data: plays of Shakespeare. `foveal data get tinyshakespeare` gets the file.

Run: python examples/character_language_model.py [--cut 4000] [--epochs 8] [--seed 0]
"""

import torch
from support import parse_options
from support.texts import Descent, read_lines
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from foveal.distributions import Categorical
from foveal.networks import CellState, StackState, recurrent_stack

NUM_STREAMS = 32  # parts of the text that are read in parallel
PIECE = 64  # characters between two updates, the maximum reach of a gradient


class CharacterModel(nn.Module):
    """Scores the next character after each character, and returns its state."""

    def __init__(self, num_characters: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(num_characters, 64)
        self.stack = recurrent_stack(64, 256, num_layers=2, dropout=0.2)
        self.score = nn.Linear(256, num_characters)

    def forward(self, read: Tensor, state: StackState | None) -> tuple[Tensor, StackState]:
        """Compute the scores of the next characters (*batch, T, C) from characters (*batch, T)."""
        ran = self.stack(self.embed(read), state=state)
        return self.score(ran.outputs), ran.state


def cut_off(state: StackState) -> StackState:
    """Detach a state: no gradient flows back through it."""
    return tuple(CellState(*(x.detach() for x in layer if x is not None)) for layer in state)


def train(model: CharacterModel, text: Tensor, epochs: int) -> None:
    """Read the text piece by piece, with an update after each."""
    streams = text[: len(text) // NUM_STREAMS * NUM_STREAMS].view(NUM_STREAMS, -1)
    pieces = [*zip(streams[:, :-1].split(PIECE, 1), streams[:, 1:].split(PIECE, 1), strict=True)]
    descent = Descent(model, learning_rate=4e-3, num_steps=epochs * len(pieces))
    for epoch in range(1, epochs + 1):
        state, total = None, 0.0
        for read, following in pieces:
            scores, state = model(read, state and cut_off(state))
            total += descent.step(cross_entropy(scores.flatten(0, 1), following.flatten()))
        print(f"epoch {epoch} of {epochs}: loss {total / len(pieces):.3f}", flush=True)


def main() -> None:
    """Train on nine tenths of the text, test on the last, then write a little."""
    options = parse_options(epochs=8)
    text = "\n".join(read_lines("tinyshakespeare/input.txt.gz", cut=options.cut))
    alphabet = sorted(set(text))
    numbers = torch.tensor([alphabet.index(character) for character in text])
    known, unseen = numbers.tensor_split([len(numbers) * 9 // 10])
    model = CharacterModel(len(alphabet))
    train(model, known, options.epochs)
    with torch.no_grad():
        scores, _ = model.eval()(unseen[:-1], None)
        perplexity = cross_entropy(scores, unseen[1:]).exp()
        counts = known.bincount(minlength=len(alphabet)) + 1
        baseline = cross_entropy(counts.log().expand_as(scores), unseen[1:]).exp()
        written, state = torch.tensor([alphabet.index("\n")]), None
        for _ in range(400):
            scores, state = model(written[-1:], state)
            written = torch.cat([written, Categorical(scores).sample()])
    print("".join(alphabet[number] for number in written))
    print(f"held-out perplexity of character counts alone: {baseline:.2f} per character")
    print(f"held-out perplexity: {perplexity:.2f} per character")
    print(f"held-out cross-entropy: {perplexity.log2():.3f} bits per character")
    assert perplexity < baseline / 2, "what came before should help to guess what comes next"


if __name__ == "__main__":
    main()

"""Remember one token over a distance: which cells learn it?

    foveal fit --recipe recipes/delay.py:lstm --out runs/delay
    python -m benchmarks.lectures fit delay --runs runs                all cases, three seeds
    python -m benchmarks.lectures score delay --runs runs

The first token of a sequence is one of eight letters, and the rest are digits. The label is the letter, so a network
without memory is right in one of eight cases:

    c 3 1 0 9 4 ...   ->   c

References: Hochreiter and Schmidhuber 1997, section 5; Bengio et al. 1994.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

from typing_extensions import override

from foveal.data import AbstractSourceSpec, Example, WhitespaceSpec
from foveal.models import ClassifierSpec, TextEncoderSpec
from foveal.specs import setting
from foveal.tasks import ClassificationSpec
from foveal.training import Run, TrainingSpec

LETTERS = "abcdefgh"
DIGITS = "0123456789"
CELLS = ("elman", "gru", "lstm")
DISTANCES = (10, 30, 100)
RATES = {"slow": 1e-3, "fast": 5e-3}  # the better one on the validation set counts
CASES = tuple(
    f"{cell}_{distance}_{rate}" for distance in DISTANCES for cell in CELLS for rate in RATES
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delays(AbstractSourceSpec):
    """Sequences whose first token is the label."""

    kind: Literal["delays"] = "delays"
    distance: int = setting(20, "number of tokens after the letter", at_least=1)
    size: int = setting(1000, "number of sequences", at_least=1)
    seed: int = setting(1, "random seed of the sequences", at_least=0)

    @override
    def read(self) -> Iterator[Example]:
        chance = Random(self.seed)
        for _ in range(self.size):
            letter = chance.choice(LETTERS)
            yield Example(" ".join((letter, *chance.choices(DIGITS, k=self.distance))), letter)


SPECS = (Delays,)


def recipe(case: str = "lstm_30_fast") -> Run:
    """Return a run with one recurrent layer of 32 units, whose last state predicts the label: under a minute."""
    cell, distance, rate = case.split("_")
    assert cell == "elman" or cell == "gru" or cell == "lstm"
    parts = [
        Delays(distance=int(distance), size=size, seed=seed)
        for size, seed in ((4000, 1), (200, 2), (500, 3))
    ]
    return Run(
        task=ClassificationSpec(
            source=WhitespaceSpec(),
            model=ClassifierSpec(
                encoder=TextEncoderSpec(
                    cell=cell,
                    embedding_size=16,
                    hidden_size=32,
                    bidirectional=False,
                    dropout=0.0,
                ),
                pooling="summary",
            ),
        ),
        train=parts[0],
        dev=parts[1],
        test=parts[2],
        training=TrainingSpec(
            steps=2000,
            batch_size=32,
            learning_rate=RATES[rate],
            schedule="constant",
            evaluate_every=100,
        ),
    )


elman, gru, lstm = (partial(recipe, f"{cell}_30_fast") for cell in CELLS)

"""Losses and predictions of tasks, and the settings of prediction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from ...attention import AttentionTrace
from ...errors import SpecError
from ...specs import setting

# Limits on the settings of a search, because a bundle may come from an untrusted source.
MOST_WIDTH = 10_000


@dataclass(frozen=True, eq=False)
class Loss:
    """A summed loss and the number of tokens or examples in the sum. Training minimizes total / count over all batches
    and processes of a step.
    """

    total: Float[Tensor, ""]
    count: Int[Tensor, ""]
    parts: Mapping[str, Tensor] = field(default_factory=dict)  # the terms of the total, for logging
    state: Any = None  # the state for the next chunk of the same text, if there is one


class Candidate(NamedTuple):
    """One answer of an n-best list."""

    output: str
    score: float  # the score that ranks answers
    probability: float  # calibrated


class Prediction(NamedTuple):
    """The answer to one example."""

    output: str
    score: float
    confidence: float  # the calibrated probability that the output is right
    nbest: tuple[Candidate, ...]  # best first, including the output
    token_probabilities: tuple[float, ...] = ()  # model probability of each token of the output
    trace: AttentionTrace | None = None  # attention of the model, if requested


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionSpec:
    """Settings of the search for answers."""

    nbest: int = setting(1, "number of answers per example", at_least=1, at_most=MOST_WIDTH)
    beam_size: int = setting(
        5,
        "beam size; 1 is greedy search, faster and slightly worse",
        at_least=1,
        at_most=MOST_WIDTH,
    )
    length_penalty: float = setting(
        0.0,
        "length penalty: 0 ranks outputs by probability, larger values favor longer outputs",
        at_least=0,
        at_most=100,
    )
    max_length: int | None = setting(
        None,
        "maximum length of an output in tokens; none: follows from the length of the source",
        at_least=1,
        at_most=1_000_000,
    )
    no_repeat_ngram: int = setting(
        0,
        "size of the n-grams that no output may contain twice, for example 3; 0: no restriction",
        at_least=0,
        at_most=1_000,
    )
    inventory: tuple[str, ...] = setting(
        (),
        "the only tokens that outputs may contain, for example the phones of a speech engine; empty: all",
    )
    batch_size: int = setting(256, "batch size in examples", at_least=1, at_most=1_000_000)
    trace: bool = setting(False, "return the attention")

    def __post_init__(self) -> None:
        if self.nbest > self.beam_size:
            raise SpecError(
                f"PredictionSpec: nbest must be at most beam_size, got nbest={self.nbest} and "
                f"beam_size={self.beam_size}. Set beam_size={self.nbest}."
            )

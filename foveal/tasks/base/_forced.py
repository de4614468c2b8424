"""What a model says of the right answers: likelihoods, guesses and attention under teacher forcing.

    log p(y | x) = sum over t of log p(y_t | y_<t, x)

Axes: B examples, T target symbols (for a classifier one), S source places, C classes, N rows of any
kind.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor


class Looked(NamedTuple):
    """Weights of attention, and which queries and places are real."""

    weights: Float[Tensor, "N T S"]  # several heads are several rows
    queries: Bool[Tensor, "N T"]
    places: Bool[Tensor, "N S"]


class Forced(NamedTuple):
    """The right answers under a model. A task of another kind has its loss in one piece."""

    log_prob: Float[Tensor, " B"]  # of each answer, with its gradient
    num_symbols: int
    num_right: int | None  # symbols that the model would have guessed; None where nobody asks
    looked: Looked | None = None


def forced_labels(
    log_probs: Float[Tensor, "B C"], labels: Int[Tensor, " B"], looked: Looked | None
) -> Forced:
    """One label for each example."""
    chosen = log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return Forced(chosen, len(labels), int((log_probs.argmax(-1) == labels).sum()), looked)


def looked(weights: Tensor, queries: Tensor, places: Tensor) -> Looked:
    """Weights (B, T, S), or (B, H, T, S) of several heads."""
    if weights.ndim == 4:
        heads = weights.shape[1]
        queries, places = (mask.repeat_interleave(heads, 0) for mask in (queries, places))
        weights = weights.flatten(0, 1)
    return Looked(weights.detach(), queries, places)

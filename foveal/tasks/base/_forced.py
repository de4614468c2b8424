"""Likelihood, predictions and attention of a model for the right answers, under teacher forcing.

    log p(y | x) = sum over t of log p(y_t | y_<t, x)

Axes: B examples, T target tokens (one for a classifier), S source positions, C classes, N rows of any kind.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor


class Looked(NamedTuple):
    """Attention weights, and the masks of queries and positions."""

    weights: Float[Tensor, "N T S"]  # several heads are several rows
    queries: Bool[Tensor, "N T"]
    places: Bool[Tensor, "N S"]


class Forced(NamedTuple):
    """The likelihood of the right answers under a model. By default, a task computes only its total loss."""

    log_prob: Float[Tensor, " B"]  # log-probability of each answer, with its gradient
    num_symbols: int
    num_right: int | None  # correctly predicted tokens; None if not computed
    looked: Looked | None = None


def forced_labels(
    log_probs: Float[Tensor, "B C"], labels: Int[Tensor, " B"], looked: Looked | None
) -> Forced:
    """Return the result for one label per example."""
    chosen = log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return Forced(chosen, len(labels), int((log_probs.argmax(-1) == labels).sum()), looked)


def looked(weights: Tensor, queries: Tensor, places: Tensor) -> Looked:
    """Reshape weights (B, T, S), or (B, H, T, S) for several heads."""
    if weights.ndim == 4:
        heads = weights.shape[1]
        queries, places = (mask.repeat_interleave(heads, 0) for mask in (queries, places))
        weights = weights.flatten(0, 1)
    return Looked(weights.detach(), queries, places)

"""Inference in semi-Markov models: log-partition, marginals, best segmentations, samples.

    p(y) = exp( sum over segments of segments[t, d, k] + sum over neighbors of transitions[t, i, k] - log Z )

where a segment starts at t, has length d + 1 and label k, and i is the label of the segment
before. The gradient of log Z is the marginals, and the gradient through the marginals is one
tangent pass over stored conditional probabilities.

Axes: B batch, T positions, D lengths, K labels, S samples, k ranks.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .. import _native
from .._arguments import check_semi_markov
from .._derivatives import Differentiable, differentiable
from .._precision import result_dtype
from .._recursions import softmax_or_zero
from . import _native as kernels, _passes as passes, _search as search

_PURE = differentiable("semi-Markov model", passes, num_potentials=2)
_NATIVE = _native.differentiable("semi-Markov model", kernels, num_potentials=2)


def _semi_markov(segments: Tensor, transitions: Tensor) -> Differentiable:
    """Return the native kernels if they support these tensors, otherwise the PyTorch passes."""
    return _NATIVE if kernels.serves_segments(segments, transitions) else _PURE


class SemiMarkovMarginals(NamedTuple):
    """Probabilities of segments and of pairs of labels of neighboring segments."""

    segments: Float[Tensor, "B T D K"]
    pairs: Float[Tensor, "B T-1 K K"]


def semi_markov_log_partition(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
) -> Float[Tensor, " B"]:
    """Compute log Z, the log-sum of exp(score) over all segmentations, in O(T K (K + D)) time and memory.

    Args:
        segments: Score of each segment by its start, its length minus 1, and its label.
        transitions: Score of each pair of labels of neighboring segments, earlier by later; axes of size 1 are shared
            by all batch items or all steps.
        mask: True on real positions; by default, all are real.

    Returns:
        log Z of each batch item; -inf if no segmentation is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> segments, transitions = torch.zeros(1, 3, 3, 1), torch.zeros(1, 1, 1, 1)
        >>> semi_markov_log_partition(segments, transitions).exp().round()    # 3, 2+1, 1+2, 1+1+1
        tensor([4.])
    """
    check_semi_markov(segments, transitions, mask)
    return _semi_markov(segments, transitions).log_partition((segments, transitions), mask)


def semi_markov_marginals(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
) -> SemiMarkovMarginals:
    """Compute the probabilities of segments and of labels of neighbors; both are differentiable once more.

    Args:
        segments: Score of each segment by its start, its length minus 1, and its label.
        transitions: Score of each pair of labels of neighboring segments, earlier by later; axes of size 1 are shared
            by all batch items or all steps.
        mask: True on real positions; by default, all are real.

    Returns:
        p(a segment starts at t with length d+1 and label k), and p(labels i, j of neighbors, the second starting at
        t+1); 0 on padding.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> found = semi_markov_marginals(torch.zeros(1, 2, 2, 1), torch.zeros(1, 1, 1, 1))
        >>> found.segments[0, :, :, 0]    # one segment of two positions, or two of one
        tensor([[0.5000, 0.5000],
                [0.5000, 0.0000]])
    """
    check_semi_markov(segments, transitions, mask)
    found = _semi_markov(segments, transitions).marginals((segments, transitions), mask)
    return SemiMarkovMarginals(*found)


class SemiMarkovBest(NamedTuple):
    """The k best segmentations, best first: labels at starts, -1 elsewhere; ranks beyond the last
    segmentation score -inf.
    """

    labels: Int[Tensor, "k B T"]
    scores: Float[Tensor, "k B"]


def semi_markov_best(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
    *,
    k: int = 1,
) -> SemiMarkovBest:
    """Find the k segmentations of highest score in O(T K (K + D) k) time.

    Args:
        segments: Score of each segment by its start, its length minus 1, and its label.
        transitions: Score of each pair of labels of neighboring segments, earlier by later; axes of size 1 are shared
            by all batch items or all steps.
        mask: True on real positions; by default, all are real.
        k: Number of segmentations.

    Returns:
        Segmentations, as labels at starts and -1 elsewhere, and their scores, best first.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> segments = torch.tensor([[[[0.0], [3.0]], [[1.0], [0.0]], [[1.0], [0.0]]]])
        >>> semi_markov_best(segments, torch.zeros(1, 1, 1, 1)).labels    # of lengths 2 and 1
        tensor([[[ 0, -1,  0]]])
    """
    check_semi_markov(segments, transitions, mask)
    if k == 1 and kernels.serves_segments(segments, transitions):
        labels, scores = kernels.best(segments.detach(), transitions.detach(), mask)
        return SemiMarkovBest(labels.unsqueeze(0), scores.unsqueeze(0))
    found = search.best(passes.prepare(segments.detach(), transitions.detach(), mask), k)
    labels = passes.restore_labels(found.labels, mask)
    return SemiMarkovBest(labels, found.scores.T.to(result_dtype(segments, transitions)))


class SemiMarkovSamples(NamedTuple):
    """Exact samples of segmentations; `possible` is False for items without any segmentation."""

    labels: Int[Tensor, "S B T"]
    possible: Bool[Tensor, " B"]


def semi_markov_sample(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
    *,
    num_samples: int,
    generator: torch.Generator | None = None,
) -> SemiMarkovSamples:
    """Draw independent exact samples, by forward filtering and backward sampling.

    Args:
        segments: Score of each segment by its start, its length minus 1, and its label.
        transitions: Score of each pair of labels of neighboring segments, earlier by later; axes of size 1 are shared
            by all batch items or all steps.
        mask: True on real positions; by default, all are real.
        num_samples: Number of segmentations to draw for each batch item.
        generator: Source of random numbers; by default, the generator of the device.

    Returns:
        Segmentations, as labels at starts and -1 elsewhere, and whether any segmentation is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> only_long = torch.tensor([[[[-torch.inf], [0.0]], [[0.0], [0.0]]]])
        >>> semi_markov_sample(only_long, torch.zeros(1, 1, 1, 1), num_samples=1).labels
        tensor([[[ 0, -1]]])
    """
    check_semi_markov(segments, transitions, mask)
    if kernels.serves_segments(segments, transitions):
        given = segments.detach(), transitions.detach()
        return SemiMarkovSamples(*kernels.sample(*given, mask, num_samples, generator))
    model = passes.prepare(segments.detach(), transitions.detach(), mask)
    starts, ends = passes.inside(model)
    weights = passes.conditionals(model, starts, ends, torch.float64)
    last = softmax_or_zero(ends[-1], torch.float64)
    possible = last.sum(-1) > 0
    if model.empty is not None:
        possible = possible | model.empty
    labels = search.draw(*weights, last, num_samples, generator)
    return SemiMarkovSamples(passes.restore_labels(labels, mask), possible)

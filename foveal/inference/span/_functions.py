"""Inference in binary bracketings: log-partition, marginals, best bracketings, samples.

    p(tree) = exp( sum over the spans of the tree of spans[i, j, label] - log Z )

A tree over n words has n spans of one word, and n - 1 wider spans, each joined from two others. The
gradient of log Z is the marginals, and the gradient through the marginals is one tangent pass
over stored conditional probabilities.

Axes: B batch, n words, L labels of a span (1: unlabelled), S samples, k ranks.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .. import _native
from .._arguments import check_spans
from .._derivatives import Differentiable, differentiable
from .._precision import result_dtype
from . import _native as kernels, _passes as passes, _search as search

_PURE = differentiable("bracketing", passes, num_potentials=1)
_NATIVE = _native.differentiable(
    "bracketing", kernels, num_potentials=1, marginals_alone=kernels.marginals
)


def _bracketing(spans: Tensor) -> Differentiable:
    """Return the native kernels if they support this tensor, otherwise the PyTorch passes."""
    return _NATIVE if kernels.serves_spans(spans) else _PURE


def span_log_partition(
    spans: Float[Tensor, "B n n L"], mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, " B"]:
    """Compute log Z, the log-sum of exp(score) over all bracketings, in O(n^3) time.

    Args:
        spans: Scores of spans by first word, last word and label; entries below the diagonal are ignored.
        mask: True on real words; by default, all are real.

    Returns:
        log Z of each batch item; -inf if no bracketing is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> span_log_partition(torch.zeros(1, 5, 5, 1)).exp().round()    # the Catalan number
        tensor([14.])
    """
    check_spans(spans, mask)
    return _bracketing(spans).log_partition((spans,), mask)


def span_marginals(
    spans: Float[Tensor, "B n n L"], mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B n n L"]:
    """Compute p(span i..j has label l); the result is differentiable once more.

    Args:
        spans: Scores of spans by first word, last word and label; entries below the diagonal are ignored.
        mask: True on real words; by default, all are real.

    Returns:
        Probability of each labeled span, 0 on padding and below the diagonal.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> span_marginals(torch.zeros(1, 3, 3, 1)).squeeze(-1)
        tensor([[[1.0000, 0.5000, 1.0000],
                 [0.0000, 1.0000, 0.5000],
                 [0.0000, 0.0000, 1.0000]]])
    """
    check_spans(spans, mask)
    return _bracketing(spans).marginals((spans,), mask)[0]


class SpanBest(NamedTuple):
    """The k best bracketings, best first; ranks beyond the last bracketing score -inf."""

    values: Bool[Tensor, "k B n n L"]
    scores: Float[Tensor, "k B"]


def span_best(
    spans: Float[Tensor, "B n n L"], mask: Bool[Tensor, "B n"] | None = None, *, k: int = 1
) -> SpanBest:
    """Find the k bracketings of highest score (CKY for k = 1) in O(n^3 k log k) time.

    Args:
        spans: Scores of spans by first word, last word and label; entries below the diagonal are ignored.
        mask: True on real words; by default, all are real.
        k: Number of bracketings.

    Returns:
        Bracketings, True on their spans, and their scores, best first.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> spans = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
        >>> span_best(spans.reshape(1, 3, 3, 1)).values.reshape(3, 3)
        tensor([[ True, False,  True],
                [False,  True,  True],
                [False, False,  True]])
    """
    check_spans(spans, mask)
    if k == 1 and kernels.serves_spans(spans):
        values, scores = kernels.best(spans.detach(), mask)
        return SpanBest(values.unsqueeze(0), scores.unsqueeze(0))
    values, scores = search.best(spans.detach(), search.find_words(spans, mask), k)
    return SpanBest(values, scores.to(result_dtype(spans)))


class SpanSamples(NamedTuple):
    """Exact samples of bracketings; `possible` is False for items without any bracketing."""

    values: Bool[Tensor, "S B n n L"]
    possible: Bool[Tensor, " B"]


def span_sample(
    spans: Float[Tensor, "B n n L"],
    mask: Bool[Tensor, "B n"] | None = None,
    *,
    num_samples: int,
    generator: torch.Generator | None = None,
) -> SpanSamples:
    """Draw independent exact samples, from the whole sentence down, in O(n^2) time for each.

    Args:
        spans: Scores of spans by first word, last word and label; entries below the diagonal are ignored.
        mask: True on real words; by default, all are real.
        num_samples: Number of bracketings to draw for each batch item.
        generator: Source of random numbers; by default, the generator of the device.

    Returns:
        Bracketings, True on their spans, and whether any bracketing is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> span_sample(torch.zeros(1, 2, 2, 1), num_samples=1).values.reshape(2, 2)
        tensor([[ True,  True],
                [False,  True]])
    """
    check_spans(spans, mask)
    if kernels.serves_spans(spans):
        return SpanSamples(*kernels.sample(spans.detach(), mask, num_samples, generator))
    solved = passes.solve((spans.detach().double(),), mask)
    weights, labels, _ = solved.saved
    words = search.find_words(spans, mask)
    values = search.draw(weights, labels.expand(spans.shape), words, num_samples, generator)
    return SpanSamples(values, solved.log_partition > -torch.inf)

"""A binary bracketing of a sentence: every span is a word or consists of two smaller spans.

    score(tree) = sum over the spans i..j of the tree of spans[i, j]

Words and the whole sentence are spans of every tree. In a labeled tree, each span has a label, and
spans[i, j, l] scores it. Time is O(n^3), also when training through the marginals.

Axes: *batch any leading shape, n words, L labels.
References: Younger 1967 (CKY); Finkel et al. 2008 (CRF); Stern et al. 2017 (scores of spans).
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from ..inference import span_best, span_log_partition, span_marginals
from ..inference.span._functions import span_sample
from ..shapes import flatten_batch, join_batch_shapes, restore_batch
from ._checks import check_mask, check_scores, check_sizes
from ._distribution import AbstractDistribution, expectation


@final
@dataclass(frozen=True, eq=False)
class SpanTree(AbstractDistribution):
    """Binary trees over n words.

    A value is boolean `(..., n, n)`, True at [i, j] if the words i..j, inclusive, are a span of the tree.
    Words outside `mask` are skipped: i and j are the first and the last real word of a span. A sentence
    without a real word has one tree, without spans.

    Args:
        spans: Score of each span, first word by last word; entries below the diagonal are ignored.
        mask: True on real words; by default, all are real.
        labeled: Whether `spans`, values and marginals have an axis of labels, `(..., n, n, L)`. The flag is explicit
            because `(..., n, n)` may have a batch axis.

    Examples:
        >>> spans = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> tree = SpanTree(spans)
        >>> tree.argmax()        # (0 1) 2
        tensor([[ True,  True,  True],
                [False,  True, False],
                [False, False,  True]])
        >>> tree.marginals()
        tensor([[1.0000, 0.7311, 1.0000],
                [0.0000, 1.0000, 0.2689],
                [0.0000, 0.0000, 1.0000]])
    """

    _is_boolean: ClassVar[bool] = True

    spans: Float[Tensor, "..."]
    mask: Bool[Tensor, "*#batch n"] | None = None
    labeled: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_scores("SpanTree", "spans", self.spans, "n n L" if self.labeled else "n n")
        first, second = self._event_shape()[:2]
        check_sizes("SpanTree", "spans", (first, second), (first, first))
        check_mask("SpanTree", self.mask, first)

    def _event_shape(self) -> torch.Size:
        return self.spans.shape[-3 if self.labeled else -2 :]

    @property
    @override
    def batch_shape(self) -> torch.Size:
        shapes = {"spans": self.spans.shape[: -len(self._event_shape())]}
        if self.mask is not None:
            shapes["mask"] = self.mask.shape[:-1]
        return join_batch_shapes("SpanTree", **shapes)

    def _flat(self) -> tuple[Tensor, Tensor | None]:
        """Flatten the potentials to one leading axis and add an axis of labels, as `inference` expects."""
        batch, event = self.batch_shape, self._event_shape()
        spans = flatten_batch(self.spans, batch, len(event))
        mask = None if self.mask is None else flatten_batch(self.mask, batch, 1)
        return spans if self.labeled else spans.unsqueeze(-1), mask

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        return restore_batch(span_log_partition(*self._flat()), self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "..."]:
        """Compute p(the tree has span i..j, with label l), in the shape of `spans`; differentiable."""
        return span_marginals(*self._flat()).reshape(*self.batch_shape, *self._event_shape())

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        """Find the k best trees (k, *batch, *event) and their scores (k, *batch)."""
        shape = (k, *self.batch_shape)
        found = span_best(*self._flat(), k=k)
        return found.values.reshape(*shape, *self._event_shape()), found.scores.reshape(shape)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        drawn = span_sample(*self._flat(), num_samples=num_samples, generator=generator)
        values = drawn.values.reshape(num_samples, *self.batch_shape, *self._event_shape())
        return values, drawn.possible.reshape(self.batch_shape)

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return tuple(self._event_shape())

    @override
    def _score(self, value: Bool[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Sum the scores of a tree's spans; -inf if `value` is not a tree of real words."""
        axes = tuple(range(-len(self._event_shape()), 0))
        held = torch.where(value, self.spans.to(self._dtype()), 0.0).sum(axes)
        count = value.sum(-1) if self.labeled else value.long()
        return torch.where(_is_tree(count, self.mask), held, -torch.inf)

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        return expectation(self.marginals(), other.spans, len(self._event_shape()))


def _is_tree(count: Tensor, mask: Tensor | None) -> Bool[Tensor, "..."]:
    """Return whether spans, given by their counts (..., n, n), form one binary tree.

    They do if there are 2 m - 1 spans for m real words (0 for m = 0), no span occurs twice or contains
    padding, and no two spans cross: more spans without a crossing are impossible.
    """
    num_words = count.shape[-1]
    real = count.new_ones(num_words, dtype=torch.bool) if mask is None else mask
    num_real = real.sum(-1)
    allowed = (real.unsqueeze(-1) & real.unsqueeze(-2)).triu()
    known = ((count == 0) | (allowed & (count == 1))).all(-1).all(-1)
    complete = count.sum((-1, -2)) == (2 * num_real - 1).clamp(min=0)
    # crossing[i, j]: the spans that start in i+1 .. j and end after j.
    starts_to = count.cumsum(-2)
    ends_after = starts_to.flip(-1).cumsum(-1).flip(-1) - starts_to
    crossing = ends_after.diagonal(dim1=-2, dim2=-1).unsqueeze(-2) - ends_after
    return known & complete & ((count == 0) | (crossing == 0)).all(-1).all(-1)

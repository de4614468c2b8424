"""The base class of dependency trees, projective or not: arcs in, heads out.

    score(tree) = sum over words d of arcs[head of d, d]

Axes: *batch any leading shape, n words, m = n + 1 words and the root.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from typing_extensions import override

from ..errors import ShapeError, ValueRangeError
from ..shapes import flatten_batch, join_batch_shapes, restore_batch
from ._checks import check_mask, check_scores, require_labels
from ._distribution import AbstractDistribution, expectation


class TreeInference(NamedTuple):
    """The functions of `inference` for one kind of tree, which take arcs, mask and single_root."""

    log_partition: Callable[..., Tensor]
    marginals: Callable[..., Tensor]
    best: Callable[..., Any]  # also takes k; returns heads (k, B, n), scores (k, B)
    sample: Callable[..., Any]  # also num_samples, generator; heads (S, B, n), possible (B,)


class _Flat(TypedDict):
    arcs: Tensor
    mask: Tensor | None
    single_root: bool


@dataclass(frozen=True, eq=False)
class AbstractDependencyTree(AbstractDistribution):
    """A dependency tree; a value is the head of each word `(..., n)`, 0 for the root, -1 on padding."""

    arcs: Float[Tensor, "*#batch m m"]
    single_root: bool = field(default=True, kw_only=True)
    mask: Bool[Tensor, "*#batch m-1"] | None = field(default=None, kw_only=True)

    @abstractmethod
    def _inference(self) -> TreeInference:
        """Return the functions for this kind of tree."""

    @abstractmethod
    def _is_allowed(
        self, heads: Int[Tensor, "*shape n"], real: Bool[Tensor, "*shape n"]
    ) -> Bool[Tensor, "*shape"]:
        """Return whether heads of the real words, which form a tree, form a tree of this kind."""

    @abstractmethod
    def _advice(self) -> str:
        """Advise, in the error message, how to handle heads that are not a tree of this kind."""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_scores(owner, "arcs", self.arcs, "n+1 n+1")
        num_heads, num_words = self.arcs.shape[-2], self.arcs.shape[-1] - 1
        if num_heads != num_words + 1 or num_words < 1:
            raise ShapeError(
                f"{owner}: arcs must be square, (..., n+1, n+1) with n >= 1 words and the root at "
                f"index 0, got {tuple(self.arcs.shape)}. Put the scores of the root's arcs into "
                f"row 0; column 0 is not read."
            )
        check_mask(owner, self.mask, num_words)

    @property
    @override
    def batch_shape(self) -> torch.Size:
        shapes = {"arcs": self.arcs.shape[:-2]}
        if self.mask is not None:
            shapes["mask"] = self.mask.shape[:-1]
        return join_batch_shapes(type(self).__name__, **shapes)

    def _flat(self) -> _Flat:
        """Flatten the potentials to one leading axis, as `inference` expects."""
        batch = self.batch_shape
        return {
            "arcs": flatten_batch(self.arcs, batch, 2),
            "mask": None if self.mask is None else flatten_batch(self.mask, batch, 1),
            "single_root": self.single_root,
        }

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        return restore_batch(self._inference().log_partition(**self._flat()), self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "*batch m m"]:
        """Compute p(h is the head of d), 0 on the diagonal, on column 0 and on padding; differentiable."""
        return restore_batch(self._inference().marginals(**self._flat()), self.batch_shape)

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        """Find the k best trees (k, *batch, n) and their scores (k, *batch)."""
        shape = (k, *self.batch_shape)
        with torch.no_grad():
            found = self._inference().best(**self._flat(), k=k)
        heads = found.heads.reshape(*shape, found.heads.shape[-1])
        return self._with_padding(heads), found.scores.reshape(shape)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        drawn = self._inference().sample(
            **self._flat(), num_samples=num_samples, generator=generator
        )
        heads = drawn.heads.reshape(num_samples, *self.batch_shape, drawn.heads.shape[-1])
        return self._with_padding(heads), drawn.possible.reshape(self.batch_shape)

    def _with_padding(self, heads: Tensor) -> Tensor:
        return heads if self.mask is None else torch.where(self.mask, heads, -1)

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return (self.arcs.shape[-1] - 1,)

    def _expanded(
        self, value: Int[Tensor, "... n"]
    ) -> tuple[Int[Tensor, "*shape n"], Bool[Tensor, "*shape n"]]:
        """Expand heads to all batch axes, and return which words are real."""
        shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        value = value.expand(*shape, -1)
        real = torch.ones_like(value, dtype=torch.bool)
        return value, real if self.mask is None else self.mask.expand_as(value)

    @override
    def _require_structures(self, value: Int[Tensor, "... n"]) -> None:
        value, real = self._expanded(value)
        require_labels(f"{type(self).__name__}.score", value, real, self.arcs.shape[-1])
        self._require_trees(torch.where(real, value, 0), real)

    @override
    def _score(self, value: Int[Tensor, "... n"]) -> Float[Tensor, "..."]:
        value, real = self._expanded(value)
        value = torch.where(real, value, 0)
        arcs = self.arcs.to(self._dtype())[..., 1:].expand(*value.shape[:-1], -1, -1)
        held = arcs.gather(-2, value.unsqueeze(-2)).squeeze(-2)
        return torch.where(real, held, 0.0).sum(-1)

    def allows(self, heads: Int[Tensor, "... n"]) -> Bool[Tensor, "..."]:
        """Return whether heads are a tree of this kind, as `score` and `log_prob` require.

        Args:
            heads: Head of each word, 0 for the root; heads of padding are ignored.

        Returns:
            True for each tree; False also if a head is not the index of a word or of the root.

        Examples:
            >>> from foveal.distributions import ProjectiveTree
            >>> crossing, nested = torch.tensor([[0, 3, 1, 2], [0, 1, 2, 2]])
            >>> ProjectiveTree(torch.zeros(5, 5)).allows(torch.stack([crossing, nested]))
            tensor([False,  True])
        """
        heads, real = self._expanded(heads)
        is_node = (heads >= 0) & (heads < self.arcs.shape[-1])
        trees = self._are_trees(torch.where(real & is_node, heads, 0), real)
        return trees & (is_node | ~real).all(-1)

    def _are_trees(
        self, heads: Int[Tensor, "*shape n"], real: Bool[Tensor, "*shape n"]
    ) -> Bool[Tensor, "*shape"]:
        good = _is_tree(heads, real) & self._is_allowed(heads, real)
        if self.single_root:
            num_roots = ((heads == 0) & real).sum(-1)
            good = good & (num_roots == real.any(-1))
        return good

    def _require_trees(
        self, heads: Int[Tensor, "*shape n"], real: Bool[Tensor, "*shape n"]
    ) -> None:
        """Raise if the heads of the real words are not a tree."""
        good = self._are_trees(heads, real)
        if bool(good.all()):
            return
        first = (~good).nonzero()[0].tolist()
        kind = "with a single root" if self.single_root else "with any number of roots"
        raise ValueRangeError(
            f"{type(self).__name__}.score: expected heads of a tree {kind}, got "
            f"{heads[tuple(first)].tolist()} at index {first}, {int((~good).sum())} of "
            f"{good.numel()} in all. {self._advice()}"
        )

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        return expectation(self.marginals(), other.arcs, 2)


def _is_tree(
    heads: Int[Tensor, "*shape n"], real: Bool[Tensor, "*shape n"]
) -> Bool[Tensor, "*shape"]:
    """Return whether the real words are descendants of node 0 through real words only."""
    # Each round doubles the number of steps up: after log2(n) rounds every word of a tree is at the root.
    up = torch.cat([torch.zeros_like(heads[..., :1]), heads], -1)
    on_real = torch.cat([torch.ones_like(real[..., :1]), real], -1).gather(-1, heads)
    for _ in range(up.shape[-1].bit_length()):
        up = up.gather(-1, up)
    return (((up[..., 1:] == 0) & on_real) | ~real).all(-1)

"""A labeling of a sequence in which each label depends on its neighbor.

    score(y) = start[y_1] + sum_t unary[t, y_t] + sum_t transitions[t, y_t, y_{t+1}] + end[y_T]

Segment attention is a chain with two states, "read" and "skip"; the CRF of a tagger has one state per
tag. Time and memory are O(T K^2), also when training through the marginals.

Axes: *batch any leading shape, T positions, K states.
References: Lafferty et al. 2001 (CRF); Kim et al. 2017, section 3.1 (segment attention).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from typing_extensions import override

from ..inference import chain_best, chain_log_partition, chain_marginals
from ..inference.chain._functions import (
    chain_node_marginals,
    chain_sample,
    checked_chain_marginals,
)
from ..shapes import flatten_batch, join_batch_shapes, restore_batch
from ._checks import check_mask, check_scores, check_sizes, require_labels
from ._distribution import AbstractDistribution, expectation
from ._transitions import (
    batch_of_transitions,
    check_transitions,
    first_real,
    flatten_transitions,
    last_real,
    per_step,
    score_of_steps,
)


@final
@dataclass(frozen=True, eq=False)
class LinearChain(AbstractDistribution):
    """Labels y_1 .. y_T; a value is `(..., T)`, -1 on padding.

    A position outside `mask` is skipped: its neighbors become adjacent, with the transition into the
    later one. A sequence with only padding uses neither `start` nor `end`.

    Args:
        unary: Score of each state at each position.
        transitions: `(K, K)`, shared by all positions, or `(..., T-1, K, K)`: entry [t, i, j] scores state i at t
            followed by j at t+1.
        mask: True on real positions; by default, all are real.
        start: Score of each state at the first real position; `(K,)` is shared by the batch.
        end: Score of each state at the last real position; `(K,)` is shared by the batch.

    Examples:
        >>> unary = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
        >>> stay = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> chain = LinearChain(unary, stay)
        >>> chain.argmax()
        tensor([1, 1, 1])
        >>> chain.marginals()[:, 1]
        tensor([0.7682, 0.7042, 0.7682])
        >>> LinearChain(unary, stay, start=torch.tensor([0.0, -torch.inf])).marginals()[0]
        tensor([1., 0.])
    """

    unary: Float[Tensor, "*#batch T K"]
    transitions: Float[Tensor, "... K K"]
    mask: Bool[Tensor, "*#batch T"] | None = None
    start: Float[Tensor, "*#batch K"] | None = None
    end: Float[Tensor, "*#batch K"] | None = None
    _is_flat: ClassVar[bool]  # of an instance; not a field

    def __post_init__(self) -> None:
        # Stored, because most methods ask for it.
        object.__setattr__(self, "_is_flat", self._fits_inference())
        if self._is_flat:
            return
        check_scores("LinearChain", "unary", self.unary, "T K")
        length, num_states = self.unary.shape[-2:]
        check_transitions("LinearChain", self.transitions, length, num_states)
        check_mask("LinearChain", self.mask, length)
        for name, scores in (("start", self.start), ("end", self.end)):
            if scores is not None:
                check_scores("LinearChain", name, scores, "K")
                check_sizes("LinearChain", name, tuple(scores.shape[-1:]), (num_states,))

    @property
    @override
    def batch_shape(self) -> torch.Size:
        if self._is_flat:
            return self.unary.shape[:1]
        shapes = {"unary": self.unary.shape[:-2], **batch_of_transitions(self.transitions)}
        if self.mask is not None:
            shapes["mask"] = self.mask.shape[:-1]
        if self.start is not None:
            shapes["start"] = self.start.shape[:-1]
        if self.end is not None:
            shapes["end"] = self.end.shape[:-1]
        return join_batch_shapes("LinearChain", **shapes)

    def _fits_inference(self) -> bool:
        """Return whether the tensors have the shapes that `inference` takes, with scores for every transition. Then
        nothing is left to check, to flatten or to restore, which takes longer than a small kernel.
        """
        unary, mask = self.unary, self.mask
        shape = unary.shape
        if len(shape) != 3 or self.start is not None or self.end is not None:
            return False
        if mask is not None and (
            mask.shape != shape[:2] or mask.dtype != torch.bool or mask.device != unary.device
        ):
            return False
        batch, length, states = shape
        return (
            length > 0
            and states > 0
            and self.transitions.shape == (batch, length - 1, states, states)
            and unary.is_floating_point()
        )

    def _unary(self) -> Float[Tensor, "*#batch T K"]:
        """Add `start` and `end` to the scores of the first and the last real position."""
        if self.start is None and self.end is None:
            return self.unary
        unary, mask = self.unary.to(self._dtype()), self.mask
        if mask is None:
            mask = torch.ones(unary.shape[-2], dtype=torch.bool, device=unary.device)
        # `where`, because the product with a one-hot mask would turn -inf into NaN at the other positions.
        for scores, position in ((self.start, first_real), (self.end, last_real)):
            if scores is not None:
                unary = torch.where(
                    position(mask).unsqueeze(-1), unary + scores.unsqueeze(-2), unary
                )
        return unary

    def _flat(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Flatten the potentials to one leading axis, as `inference` expects."""
        if self._is_flat:
            return self.unary, self.transitions, self.mask
        batch = self.batch_shape
        unary = flatten_batch(self._unary(), batch, 2)
        transitions = flatten_transitions(self.transitions, batch)
        mask = None if self.mask is None else flatten_batch(self.mask, batch, 1)
        return unary, transitions, mask

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        return restore_batch(chain_log_partition(*self._flat()), self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "*batch T K"]:
        """Compute p(y_t = j), 0 on padding; differentiable."""
        return restore_batch(chain_node_marginals(*self._flat()), self.batch_shape)

    def pair_marginals(self) -> Float[Tensor, "*batch N K K"]:
        """Compute p(y_t = i, y_{t+1} = j) for the N = T - 1 transitions; differentiable.

        The layout matches per-position transitions. Entry t is the transition into position t+1 from
        the nearest real position before it, and 0 if there is no such transition.

        Returns:
            Probability of each pair of states, earlier by later.

        Examples:
            >>> LinearChain(torch.zeros(2, 2), torch.zeros(2, 2)).pair_marginals()
            tensor([[[0.2500, 0.2500],
                     [0.2500, 0.2500]]])
        """
        return self._marginals()[1]

    def _marginals(self) -> tuple[Tensor, Tensor]:
        if self._is_flat:
            return checked_chain_marginals(self.unary, self.transitions, self.mask)
        batch = self.batch_shape
        nodes, pairs = chain_marginals(*self._flat())
        return restore_batch(nodes, batch), restore_batch(pairs, batch)

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        """Find the k best labelings (k, *batch, T) and their scores (k, *batch)."""
        shape = (k, *self.batch_shape)
        found = chain_best(*self._flat(), k=k)
        labels = found.labels.reshape(*shape, *self._value_shape())
        return self._with_padding(labels), found.scores.reshape(shape)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        drawn = chain_sample(*self._flat(), num_samples=num_samples, generator=generator)
        labels = drawn.labels.reshape(num_samples, *self.batch_shape, *self._value_shape())
        return self._with_padding(labels), drawn.possible.reshape(self.batch_shape)

    def _with_padding(self, labels: Tensor) -> Tensor:
        return labels if self.mask is None else torch.where(self.mask, labels, -1)

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return (self.unary.shape[-2],)

    @override
    def _num_event_axes(self, name: str) -> int:
        return 3 if name == "transitions" else super()._num_event_axes(name)

    @override
    def _require_structures(self, value: Int[Tensor, "... T"]) -> None:
        require_labels("LinearChain.score", value, self.mask, self.unary.shape[-1])

    @override
    def _score(self, value: Int[Tensor, "... T"]) -> Float[Tensor, "..."]:
        shape = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        value = value.expand(*shape, -1)
        mask = torch.ones_like(value, dtype=torch.bool)
        if self.mask is not None:
            mask = self.mask.expand_as(value)
        value = torch.where(mask, value, 0)
        dtype = self._dtype()

        unary = self._unary().to(dtype).expand(*shape, -1, -1).gather(-1, value.unsqueeze(-1))
        on_nodes = torch.where(mask, unary.squeeze(-1), 0.0).sum(-1)
        return on_nodes + score_of_steps(self.transitions.to(dtype), value, mask)

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        nodes, pairs = self._marginals()
        return expectation(nodes, other._unary(), 2) + expectation(
            pairs, per_step(other.transitions), 3
        )

"""Any structure: give the log-partition, and autograd computes the rest.

    log Z = log sum over z of exp( score(z) ),      gradient of log Z = expected parts (the marginals)

The recursion for log Z sums with a function that it receives as an argument (see `_reductions`). One recursion
therefore serves every method: with `maximum` its gradient is the best structure, with `draw` an exact sample.

Axes: *batch any leading shape, B the leading shape as one axis, *event axes of a potential.
References: Eisner 2016; Stanojevic & Sartran 2023 (SynJax).
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from ...errors import ShapeError, ValueRangeError
from ...shapes import flatten_batch, join_batch_shapes, restore_batch
from .._checks import check_mask, check_scores, check_sizes
from .._distribution import AbstractDistribution, expectation
from ._ranking import ranked
from ._recursion import Outcome, Recursion, Tensors
from ._reductions import Reduction, draw, logsumexp, maximum


@dataclass(frozen=True, eq=False)
class LogPartitionDistribution(AbstractDistribution):
    """A custom distribution over structures, given by its log-partition.

    A subclass is a frozen dataclass. Its floating-point tensors are log-potentials, its other tensors
    are masks or indices, and `axes` names the axes of each tensor after the batch axes. The entries of
    the first potential are the parts of structures, and a structure is given by its parts: a value is
    a boolean tensor in the shape of the first potential, True on the parts of the structure.

    `log_partition_of` computes log Z with sums of entries of the potentials and with the `logsumexp`
    that it receives. Four conditions make all methods exact:

    - every structure is summed once, and is determined by its parts;
    - a structure has a part at most once, and uses each intermediate result at most once;
    - scores come from the potentials only (`-inf` may be added to forbid, 0 to start a sum);
    - items of the batch are independent of each other.

    `foveal.testing.check_distribution` compares your distribution with an enumeration of its structures.

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, eq=False)
        ... class Path(LogPartitionDistribution):
        ...     steps: Tensor                      # (..., T, K, K)
        ...     axes = {"steps": "T K K"}
        ...
        ...     def log_partition_of(self, logsumexp, steps):
        ...         ends = steps[:, 0, 0]          # every path starts in state 0
        ...         for t in range(1, steps.shape[1]):
        ...             ends = logsumexp(ends.unsqueeze(-1) + steps[:, t], -2)
        ...         return logsumexp(ends, -1)
        >>> path = Path(torch.zeros(3, 2, 2))
        >>> path.log_partition().exp()             # 2^3 paths
        tensor(8.)
        >>> path.marginals()[1]
        tensor([[0.2500, 0.2500],
                [0.2500, 0.2500]])
        >>> path.entropy().exp()
        tensor(8.)
    """

    _is_boolean: ClassVar[bool] = True

    # The names of the axes of each tensor after the batch axes: {"arcs": "n+1 n+1", "mask": "n"}.
    # Axes of the same name have the same size.
    axes: ClassVar[dict[str, str]]

    @abstractmethod
    def log_partition_of(self, logsumexp: Reduction, *args: Any, **tensors: Any) -> Tensor:
        """Compute log Z of each item of a batch.

        Args:
            logsumexp: `logsumexp(scores, axis)` sums exp(scores) along an axis, in log space, and
                removes the axis. Use no other function for sums over structures: `argmax`, `topk`
                and `sample` pass another function here.
            *args: None; the tensors of the fields are passed by name.
            **tensors: The tensors of the fields, by their names, with exactly one batch axis: potentials
                in float64, (B, *event). None where a field is None.

        Returns:
            log Z of shape (B,).
        """

    def parts_of(self, value: Tensor) -> Bool[Tensor, "..."]:
        """Return the parts of a structure, in the shape of the first potential.

        For values that are not boolean, override `parts_of`, `value_of` and `_value_shape`.

        Args:
            value: Structures; boolean unless overridden.

        Returns:
            True on the parts of each structure.
        """
        return value

    def value_of(self, parts: Bool[Tensor, "..."]) -> Tensor:
        """Return the structure that has these parts.

        Args:
            parts: True on the parts of each structure, in the shape of the first potential.

        Returns:
            Structures, in the form that `parts_of` takes.
        """
        return parts

    def __post_init__(self) -> None:
        owner = type(self).__name__
        sizes: dict[str, int] = {}
        for name, tensor in self._tensors().items():
            if name not in self.axes:
                raise ShapeError(
                    f"{owner}: expected the axes of every tensor, got none for {name}. Name the axes "
                    f'after the batch axes: axes = {{"{name}": "n n", ...}}.'
                )
            axes = [axis.partition("+") for axis in self.axes[name].split()]
            if tensor.is_floating_point():
                check_scores(owner, name, tensor, self.axes[name])
            shape = tuple(tensor.shape[max(0, tensor.ndim - len(axes)) :])
            for (axis, _, more), size in zip(axes, shape, strict=False):
                sizes.setdefault(axis, size - int(more or 0))
            expected = tuple(sizes.get(axis, 0) + int(more or 0) for axis, _, more in axes)
            if tensor.dtype == torch.bool:
                check_mask(owner, tensor, *expected)
            check_sizes(owner, name, shape, expected)

    @property
    @override
    def batch_shape(self) -> torch.Size:
        shapes = {
            name: tensor.shape[: tensor.ndim - self._num_event_axes(name)]
            for name, tensor in self._tensors().items()
        }
        return join_batch_shapes(type(self).__name__, **shapes)

    @override
    def _num_event_axes(self, name: str) -> int:
        return len(self.axes[name].split())

    def _recursion(self, shape: torch.Size | None = None) -> Recursion:
        """Build the recursion with the tensors flattened to one batch axis, over a leading shape."""
        shape = self.batch_shape if shape is None else shape
        tensors = {
            name: flatten_batch(tensor, shape, self._num_event_axes(name))
            for name, tensor in self._tensors().items()
        }
        potentials = {name: tensors[name].double() for name in self.log_potentials()}
        others = {name: tensors.get(name) for name in self.axes if name not in potentials}
        name = type(self).__name__
        return Recursion(name, self.log_partition_of, potentials, others).without_unread()

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        total = self._recursion().solve(logsumexp)
        return restore_batch(total.to(self._dtype()), self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "..."]:
        """Compute the probability of each part, in the shape of the first potential; differentiable."""
        first = next(iter(self._expected_parts().values()))
        return restore_batch(first.to(self._dtype()), self.batch_shape)

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        potentials = other._recursion(self.batch_shape).potentials
        return restore_batch(_weighted(self._expected_parts(), potentials), self.batch_shape)

    def _expected_parts(self) -> Tensors:
        """Compute the expected number of uses of each entry of each potential (B, *event)."""
        return self._recursion().outcome(logsumexp, records=self._records_gradient()).used

    @override
    def _value_shape(self) -> tuple[int, ...]:
        name, first = self._first_potential()
        return tuple(first.shape[first.ndim - self._num_event_axes(name) :])

    def _used(self, value: Tensor) -> tuple[Bool[Tensor, "*shape"], Tensors]:
        """Return which values are structures, and how often each uses each entry of each potential."""
        event = self._value_shape()
        leading = value.shape[: value.ndim - len(event)]
        shape = torch.broadcast_shapes(leading, self.batch_shape)
        recursion = self._recursion(shape)
        first, like = next(iter(recursion.potentials.items()))
        parts = self.parts_of(value.expand(*shape, *event)).reshape(like.shape)
        # Several structures may consist of some of these parts; only the value has all of them.
        weights = {name: torch.zeros_like(part) for name, part in recursion.potentials.items()}
        weights[first] = torch.where(parts, 1.0, -torch.inf).double()
        total, used = replace(recursion, potentials=weights).outcome(maximum)
        return (total == parts.flatten(1).sum(1)).reshape(shape), used

    @override
    def _require_structures(self, value: Tensor) -> None:
        is_structure, _ = self._used(value)
        if not bool(is_structure.all()):
            raise ValueRangeError(
                f"{type(self).__name__}.score: expected the parts of a structure, got parts that are "
                f"none in {int((~is_structure).sum())} of {is_structure.numel()} values, the first at "
                f"index {(~is_structure).nonzero()[0].tolist()}. Compare with argmax(), which returns "
                f"a structure."
            )

    @override
    def _score(self, value: Tensor) -> Tensor:
        """Score each value; the score is -inf if the value is not a structure."""
        is_structure, used = self._used(value)
        scores = _weighted(used, self._recursion(is_structure.shape).potentials)
        scores = scores.reshape(is_structure.shape)
        return torch.where(is_structure, scores, -torch.inf).to(self._dtype())

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        recursion, shape = self._recursion(), (k, *self.batch_shape)
        if k == 1:
            found = recursion.outcome(maximum)
            return self._values(found, shape), found.total.reshape(shape)
        name, like = self._first_potential()
        event = like.shape[like.ndim - self._num_event_axes(name) :]
        parts = torch.zeros(k, self.batch_shape.numel(), event.numel(), dtype=torch.bool)
        scores = torch.full(parts.shape[:2], -torch.inf, dtype=torch.float64)
        for item, regions in enumerate(ranked(recursion, k) if parts.numel() else []):
            for rank, region in enumerate(regions):
                parts[rank, item], scores[rank, item] = region.best, region.score
        values = self.value_of(parts.to(like.device).reshape(*shape, *event))
        return values, scores.to(like.device).reshape(shape)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        shape = torch.Size((num_samples, *self.batch_shape))
        values = self._values(self._recursion(shape).outcome(draw(generator)), shape)
        return values, self.log_partition() > -torch.inf

    def _values(self, outcome: Outcome, shape: tuple[int, ...]) -> Tensor:
        """Return the structures that an outcome uses; if none is possible, they are arbitrary."""
        used = next(iter(outcome.used.values()))
        possible = (outcome.total > -torch.inf).reshape(-1, *(1,) * (used.ndim - 1))
        wrong = possible & (used != 0) & (used != 1)
        if bool(wrong.any()):
            raise ValueRangeError(
                f"{type(self).__name__}.log_partition_of: expected structures that have each part once "
                f"or not at all, got a part {used[wrong][0].item():g} times. Sum over structures with "
                f"the logsumexp that is passed in, and with no other function."
            )
        return self.value_of((used == 1).reshape(*shape, *used.shape[1:]))


def _weighted(used: Tensors, potentials: Tensors) -> Float[Tensor, " B"]:
    """Sum the potentials, weighted by their number of uses."""
    sums = [expectation(used[name], part, part.ndim - 1) for name, part in potentials.items()]
    return torch.stack(sums).sum(0)

"""Derivatives under the transforms of `torch.func` and under forward-mode AD.

    reverse   d log Z = marginals,               d (marginals . g) = Hessian of log Z times g
    forward   log Z'  = marginals . direction,   marginals'        = Hessian of log Z times direction

The Hessian is symmetric, so both modes use the same tangent pass. Each Function takes only the
potentials and repeats the inside pass if it needs one. Every tensor then has its batch axis in
front, and `vmap` folds the mapped axis into the batch axis. The passes write in place and never
receive a tensor of a transform.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from ._passes import Differentiable, Passes, Tensors
from ._requests import refuse_forward_over_forward, refuse_third_derivative, sum_like


@dataclass(frozen=True, eq=False)
class _Structure:
    """The passes of a structure, as an argument of a Function."""

    name: str
    passes: Passes
    num_potentials: int


def transformable(name: str, passes: Passes, num_potentials: int) -> Differentiable:
    """Wrap the passes of a structure; error messages contain `name`."""
    structure = _Structure(name, passes, num_potentials)

    def log_partition(potentials: Tensors, mask: Tensor | None) -> Tensor:
        refuse_forward_over_forward(name)
        return _LogPartition.apply(structure, mask, *potentials)

    def marginals(potentials: Tensors, mask: Tensor | None) -> Tensors:
        refuse_forward_over_forward(name)
        return _Marginals.apply(structure, mask, *potentials)

    return Differentiable(log_partition, marginals)


class _Rule(torch.autograd.Function):
    """(structure, mask, potentials) -> results with the batch axis in front."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.structure, *tensors = inputs
        ctx.sizes = [part.shape for part in output] if isinstance(output, tuple) else None
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)


class _LogPartition(_Rule):
    @staticmethod
    def forward(structure: Any, mask: Any, *potentials: Any) -> Any:
        # Copy, because forward-mode AD does not accept a view as the result of a Function.
        return structure.passes.log_partition(potentials, mask).clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        mask, *potentials = ctx.saved_tensors
        results: list[Tensor | None] = [None] * (len(potentials) + 2)
        if grads[0] is None:
            return tuple(results)
        found = _Marginals.apply(ctx.structure, mask, *potentials)
        for i, (potential, part) in enumerate(zip(potentials, found, strict=True), start=2):
            if ctx.needs_input_grad[i]:
                weight = grads[0].reshape(-1, *(1,) * (part.ndim - 1))
                results[i] = sum_like(potential, weight * part)
        return tuple(results)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        mask, *potentials = ctx.saved_tensors
        found = _Marginals.apply(ctx.structure, mask, *potentials)
        moved = [
            (part * along).flatten(1).sum(1)
            for part, along in zip(found, tangents[2:], strict=True)
            if along is not None
        ]
        return torch.stack(moved).sum(0).to(found[0].dtype)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        structure, *tensors = args
        batch, folded = _fold(info.batch_size, in_dims[1:], tensors, first=1)
        found = _LogPartition.apply(structure, *folded)
        return found.unflatten(0, (info.batch_size, batch)), 0


class _Marginals(_Rule):
    @staticmethod
    def forward(structure: Any, mask: Any, *potentials: Any) -> Any:
        solved = structure.passes.solve(potentials, mask)
        return structure.passes.marginals(solved.saved, mask)[0]

    @staticmethod
    def backward(ctx: Any, *directions: Any) -> Any:
        mask, *potentials = ctx.saved_tensors
        along = _tangent(ctx, mask, directions, potentials)
        wanted = ctx.needs_input_grad[2:]
        changes = [part if want else None for part, want in zip(along, wanted, strict=True)]
        return None, None, *map(sum_like, potentials, changes)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        mask, *potentials = ctx.saved_tensors
        directions = [
            None if part is None else part.expand(size)
            for part, size in zip(tangents[2:], ctx.sizes, strict=True)
        ]
        return _tangent(ctx, mask, directions, potentials)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        structure, *tensors = args
        batch, folded = _fold(info.batch_size, in_dims[1:], tensors, first=1)
        found = _Marginals.apply(structure, *folded)
        return _unfold(found, (info.batch_size, batch)), (0,) * len(found)


class _Tangent(_Rule):
    """(structure, mask, directions, potentials) -> the Hessian times the directions."""

    @staticmethod
    def forward(structure: Any, mask: Any, *tensors: Any) -> Any:
        passes, count = structure.passes, structure.num_potentials
        directions, potentials = tensors[:count], tensors[count:]
        _, saved = passes.marginals(passes.solve(potentials, mask).saved, mask)
        return passes.tangent(saved, mask, directions, (True,) * count)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> NoReturn:
        refuse_third_derivative(ctx.structure.name)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> NoReturn:
        refuse_third_derivative(ctx.structure.name)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        structure, *tensors = args
        first = 1 + structure.num_potentials
        batch, folded = _fold(info.batch_size, in_dims[1:], tensors, first=first)
        found = _Tangent.apply(structure, *folded)
        return _unfold(found, (info.batch_size, batch)), (0,) * len(found)


def _tangent(ctx: Any, mask: Any, directions: Any, potentials: Any) -> Any:
    """Run the tangent pass; return None for each potential if every direction is None."""
    if all(part is None for part in directions):
        return (None,) * len(potentials)
    return _Tangent.apply(ctx.structure, mask, *directions, *potentials)


def _unfold(found: Tensors, sizes: tuple[int, int]) -> Tensors:
    """Reverse `_fold`: (V B, ...) -> (V, B, ...)."""
    return tuple(part.unflatten(0, sizes) for part in found)


def _fold(size: int, dims: Any, tensors: Any, *, first: int) -> tuple[int, list[Tensor | None]]:
    """Fold the mapped axis of tensors into their batch axis, (V, B, ...) -> (V B, ...); return B too.

    The tensor at `first` is the first potential, which has the full batch size. A later potential
    stays shared if the batch shares it and it is not mapped.
    """
    main, axis = tensors[first], dims[first]
    batch = len(main) if axis is None else main.movedim(axis, 0).shape[1]
    folded = []
    for place, (tensor, dim) in enumerate(zip(tensors, dims, strict=True)):
        if tensor is None or (place > first and dim is None and len(tensor) == 1):
            folded.append(tensor)
            continue
        wide = tensor.unsqueeze(0) if dim is None else tensor.movedim(dim, 0)
        folded.append(wide.expand(size, batch, *wide.shape[2:]).flatten(0, 1))
    return batch, folded

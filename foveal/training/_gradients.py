"""Gradient of a step: summed over batches and processes, divided by the count, clipped.

    g = ( sum over processes and batches of the gradient of total ) / ( sum of count )
    g <- g * min(1, clip / |g|)

A loss is a sum and a count, so the result is the gradient of the mean over all tokens of the step, for any split into
batches and processes. Sum and count share one tensor with the gradients: each step sends one message.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Parameter
from torch.nn.utils import get_total_norm

from ..errors import ValueRangeError
from ._group import Group

_TINY = 1e-6  # as in torch's clipping: a gradient of norm 0 stays 0


class Reduced(NamedTuple):
    """The results of a step that all processes share. The tensors are scalars that have not been read yet."""

    total: Float[Tensor, ""]
    tokens: Float[Tensor, ""]  # number of tokens in the total
    norm: Float[Tensor, ""]  # norm of the gradient of the mean, before clipping
    signals: tuple[float, ...]  # one for each input signal, summed over the processes
    parts: Mapping[str, Float[Tensor, ""]] = MappingProxyType({})  # means in this process


class Gradients:
    """Finalizes the gradients of a step in place, in `parameter.grad`.

    A parameter that a step did not use has gradient 0, with one process or many, because a process does not know
    whether another one used the parameter.
    """

    def __init__(self, parameters: Sequence[Parameter], group: Group, num_signals: int) -> None:
        self._parameters, self._group = parameters, group
        self._num_signals = num_signals
        if group.size > 1:
            self._flat, self._views = _flat_views(parameters, 2 + num_signals)

    def finish(
        self,
        total: Float[Tensor, ""],
        count: Float[Tensor, ""],
        *,
        clip_norm: float | None,
        signals: Sequence[float],
        unscale: Callable[[], None] = lambda: None,
    ) -> Reduced:
        """Sum over processes, divide and clip.

        Args:
            total: The summed loss of this process, without a graph.
            count: The number of tokens or examples in the sum.
            clip_norm: The maximum norm of the gradient, or None.
            signals: Numbers that are summed over the processes.
            unscale: Divides the gradients, summed over the processes, by the scale of the loss.

        Returns:
            The sums over all processes, and the norm of the gradient before clipping.
        """
        assert len(signals) == self._num_signals
        for parameter in self._parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        summed = tuple(signals)
        if self._group.size > 1:
            total, count, summed = self._exchange(total, count, signals)
        unscale()
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        norm = get_total_norm(gradients, foreach=True) / count
        scale = count.reciprocal()
        if clip_norm is not None:
            scale = scale * (clip_norm / (norm + _TINY)).clamp(max=1.0)
        torch._foreach_mul_(gradients, scale)  # pyright: ignore[reportPrivateImportUsage]
        return Reduced(total, count, norm, summed)

    def _exchange(
        self, total: Tensor, count: Tensor, signals: Sequence[float]
    ) -> tuple[Tensor, Tensor, tuple[float, ...]]:
        own = [p.grad for p in self._parameters if p.grad is not None]
        torch._foreach_copy_(self._views, own)  # pyright: ignore[reportPrivateImportUsage]
        rest = self._flat[len(self._flat) - 2 - self._num_signals :]
        rest[:2].copy_(torch.stack([total, count]))
        rest[2:].copy_(torch.tensor(signals))
        self._group.add_up(self._flat)
        for parameter, view in zip(self._parameters, self._views, strict=True):
            parameter.grad = view
        rest = rest.clone()  # the buffer is reused before these are read
        return rest[0], rest[1], tuple(rest[2:].tolist())


def _flat_views(parameters: Sequence[Parameter], extra: int) -> tuple[Tensor, list[Tensor]]:
    """Return one tensor with room for all gradients and some numbers, and a view for each parameter."""
    kinds = {parameter.dtype for parameter in parameters}
    if kinds != {torch.float32}:
        names = ", ".join(sorted(str(kind) for kind in kinds))
        raise ValueRangeError(
            f"training in several processes: expected parameters of torch.float32, got {names}. Call "
            f"model.float() first; bf16=True still computes in bfloat16."
        )
    sizes = [parameter.numel() for parameter in parameters]
    flat = torch.zeros(sum(sizes) + extra, device=parameters[0].device)
    parts = flat[: sum(sizes)].split(sizes)
    return flat, [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]

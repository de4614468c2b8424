"""Linear chains with the C++ kernels (the recurrences are in `native/src/chain_lanes.h`) and with the
Triton kernels (in `gpu/foveal_triton/_chain_kernels.py`).

Axes: B batch, T positions, K states, S samples.
"""

from typing import Any, NoReturn

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised
from .._requests import records_gradient, refuse_third_derivative, wants_gradient
from .._triton import ops_of, serves as serves_on_gpu

_OPS = torch.ops.foveal_native  # the separate kernel for shared transitions is only for the CPU
# A step of the Triton kernels holds all pairs of states in registers, and counts them in 32 bits.
_MOST_STATES = 64
_MOST_PAIRS = 2**31

# With more states than this, a separate kernel for shared transitions is faster: it creates no
# (K, K) table for each position. With fewer states it is slower than the general kernel.
_MANY_STATES = 10


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    return ops_of(potentials[0]).chain_log_partition.default(*potentials, mask)


def solve(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> NativeSolved:
    """Compute log Z, the node marginals (B, T, K) and the pair marginals (B, T-1, K, K)."""
    ops = ops_of(potentials[0])
    log_partition, nodes, pairs = ops.chain_marginals.default(*potentials, mask)
    return NativeSolved(log_partition, (nodes, pairs), ())


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B T"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivatives of both marginals."""
    nodes, pairs = saved
    tangent_op = ops_of(nodes).chain_tangent.default
    on_nodes, on_pairs = tangent_op(nodes, pairs, mask, *directions, wanted[1])
    return on_nodes if wanted[0] else None, on_pairs if wanted[1] else None


def serves_chains_on_gpu(
    unary: Float[Tensor, "B T K"], transitions: Float[Tensor, "#B #T-1 K K"]
) -> bool:
    """Return whether the Triton kernels support these tensors."""
    _, length, states = unary.shape
    small = states <= _MOST_STATES and length * states**2 < _MOST_PAIRS
    return small and serves_on_gpu(unary, transitions)


class _Tangent(torch.autograd.Function):
    """Multiply the Hessian by directions on both marginals; a third derivative raises an error."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Any:
        return ops_of(arguments[0]).chain_tangent.default(*arguments)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> NoReturn:
        refuse_third_derivative("linear chain")


class _Marginals(torch.autograd.Function):
    """(unary, transitions, mask) -> marginals, like the Function in `.._native` for any structure, but with a
    third of its calls in Python. They take longer than the kernels of 32 chains of 25 positions and two states.
    """

    @staticmethod
    def forward(ctx: Any, unary: Any, transitions: Any, mask: Any) -> Any:
        _, nodes, pairs = ops_of(unary).chain_marginals.default(unary, transitions, mask)
        ctx.save_for_backward(mask, nodes, pairs)
        ctx.shape = transitions.shape
        ctx.set_materialize_grads(False)
        return nodes, pairs

    @staticmethod
    def backward(ctx: Any, *directions: Any) -> Any:
        on_nodes, on_pairs = directions
        if on_nodes is None and on_pairs is None:
            return None, None, None
        mask, nodes, pairs = ctx.saved_tensors
        wants_unary, wants_transitions, _ = ctx.needs_input_grad
        arguments = nodes, pairs, mask, on_nodes, on_pairs, wants_transitions
        if records_gradient():
            on_unary, on_transitions = _Tangent.apply(*arguments)
        else:
            on_unary, on_transitions = ops_of(nodes).chain_tangent.default(*arguments)
        if not wants_transitions:
            return on_unary, None, None
        if on_transitions.shape != ctx.shape:
            on_transitions = on_transitions.sum_to_size(ctx.shape)
        return on_unary if wants_unary else None, on_transitions, None


def marginals(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
) -> tuple[Float[Tensor, "B T K"], Float[Tensor, "B T-1 K K"]]:
    """Compute both marginals; they are differentiable."""
    unary, transitions = raised(unary), raised(transitions)
    if wants_gradient((unary, transitions)):
        return _Marginals.apply(unary, transitions, mask)
    _, nodes, pairs = ops_of(unary).chain_marginals.default(unary, transitions, mask)
    return nodes, pairs


class _NodesTangent(torch.autograd.Function):
    """Multiply the Hessian by a direction on the nodes; a third derivative raises an error."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return _OPS.chain_nodes_tangent.default(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> NoReturn:
        refuse_third_derivative("linear chain")


class _Nodes(torch.autograd.Function):
    """(unary, shared transitions, mask) -> node marginals."""

    @staticmethod
    def forward(ctx: Any, unary: Any, transitions: Any, mask: Any) -> Any:
        _, nodes, kept, safe = _OPS.chain_nodes.default(unary, transitions, mask)
        ctx.save_for_backward(unary, transitions, mask, kept, safe)
        return nodes

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        tangent = _NodesTangent.apply if records_gradient() else _OPS.chain_nodes_tangent.default
        return *tangent(*ctx.saved_tensors, *grads), None


def has_node_kernel(
    unary: Float[Tensor, "B T K"], transitions: Float[Tensor, "#B #T-1 K K"]
) -> bool:
    """Return whether the separate kernel for node marginals supports these tensors."""
    return transitions.shape[:2] == (1, 1) and unary.shape[-1] > _MANY_STATES


def node_marginals(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "1 1 K K"],
    mask: Bool[Tensor, "B T"] | None,
) -> Float[Tensor, "B T K"]:
    """Compute only the node marginals, for one shared table of transitions; they are differentiable."""
    unary, transitions = raised(unary), raised(transitions)
    if wants_gradient((unary, transitions)):
        return _Nodes.apply(unary, transitions, mask)
    return _OPS.chain_nodes.default(unary, transitions, mask)[1]


def best(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
) -> tuple[Int[Tensor, "B T"], Float[Tensor, " B"]]:
    """Find the best labeling and its score."""
    return ops_of(unary).chain_best.default(raised(unary), raised(transitions), mask)


def sample(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
    num_samples: int,
    generator: torch.Generator | None,
) -> tuple[Int[Tensor, "S B T"], Bool[Tensor, " B"]]:
    """Draw exact samples, with one uniform number for each label; return whether any exist."""
    shape = (num_samples, *unary.shape[:2])
    uniforms = torch.rand(shape, dtype=torch.float64, device=unary.device, generator=generator)
    return ops_of(unary).chain_sample.default(raised(unary), raised(transitions), mask, uniforms)

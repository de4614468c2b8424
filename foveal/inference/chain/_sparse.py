"""The linear chain with a sparse maximum in each step, from the first position to the last.

    inside        a[t, j]    = unary[t, j] + max_alpha over i of ( a[t-1, i] + transitions[t, i, j] ),   a[0] = unary[0]
    maximum       v          = max_alpha over j of a[T-1, j]
    conditionals  q[t, j, i] = the alpha-entmax over i in that step  = p( y_{t-1} = i | y_t = j )
    outside       m[t-1, i]  = sum_j q[t, j, i] m[t, j],     m[T-1] = the alpha-entmax over j
    tangent       the derivative of a, then of q and m, along a direction in the potentials

The gradient of v is m and the pairs q m. Its Hessian is symmetric, so the tangent pass computes
the gradient through the marginals. With log-sum-exp for max_alpha this is the linear
chain. With any other function the direction of reading matters, because only log-sum-exp is
associative. A masked position is a step that copies the state and adds 0.

Axes: T positions (leading inside), B batch, K states; i the earlier state, j the later.
References: Mensch & Blondel 2018, sections 3 and 4.1 (Viterbi with a smoothed maximum).
"""

from functools import lru_cache
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ...masking import linked_steps
from .._derivatives import Differentiable, Solved, Tensors, differentiable
from .._entmax import smooth_max, smooth_max_tangent
from .._precision import result_dtype, without_autocast
from .._recursions import keep
from ._functions import ChainMarginals


def sparse_chain_maximum(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
    *,
    alpha: float,
) -> Float[Tensor, " B"]:
    """Compute the smoothed maximum of the score over labelings; -inf where none is possible.

    Args:
        unary: Score of each state at each position.
        transitions: Score of each pair of neighboring states, earlier by later; axes of size 1 are shared by all
            batch items or all steps.
        mask: True on real positions; by default, all are real.
        alpha: Order of the entropy, greater than 1: 2 for sparsemax, 1.5 for 1.5-entmax.

    Returns:
        Smoothed maximum of each batch item.

    Examples:
        >>> sparse_chain_maximum(torch.tensor([[[1.0], [2.0]]]), torch.zeros(1, 1, 1, 1), alpha=2.0)
        tensor([3.])
    """
    return _sparse_chain(alpha).log_partition((unary, transitions), mask)


def sparse_chain_marginals(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None = None,
    *,
    alpha: float,
) -> ChainMarginals:
    """Compute p(y_t = j) and p(y_{t-1} = i, y_t = j), many of them 0, in O(T K^2 log K) time.

    Args:
        unary: Score of each state at each position.
        transitions: Score of each pair of neighboring states, earlier by later; axes of size 1 are shared by all
            batch items or all steps.
        mask: True on real positions; by default, all are real.
        alpha: Order of the entropy, greater than 1: 2 for sparsemax, 1.5 for 1.5-entmax.

    Returns:
        Probabilities of states and of pairs of neighboring states, 0 on padding.

    Examples:
        >>> unary = torch.tensor([[[0.0, 2.0], [0.0, 0.5]]])
        >>> sparse_chain_marginals(unary, torch.zeros(1, 1, 2, 2), alpha=2.0).nodes
        tensor([[[0.0000, 1.0000],
                 [0.2500, 0.7500]]])
    """
    return ChainMarginals(*_sparse_chain(alpha).marginals((unary, transitions), mask))


class _Passes:
    """The passes, as a class with an alpha and not an instance: torch.compile can trace a class."""

    alpha: ClassVar[float]

    @classmethod
    def log_partition(cls, potentials: Tensors, mask: Tensor | None) -> Tensor:
        return cls.solve(potentials, mask).log_partition

    @classmethod
    def solve(cls, potentials: Tensors, mask: Tensor | None) -> Solved:
        """Compute the maximum, the conditionals (T-1, B, j, i) and the marginals of the last state."""
        scores, steps = potentials
        dtype = result_dtype(scores, steps)
        unary, transitions = _prepare(scores, steps, mask)
        inside, conditionals = unary[0], []
        for score, step in zip(unary[1:], transitions, strict=True):
            found = smooth_max(inside.unsqueeze(-2) + step, cls.alpha)
            inside = found.maximum + score
            conditionals.append(found.argmax.to(dtype))
        last = smooth_max(inside, cls.alpha)
        nothing = inside.new_empty(0, *inside.shape, inside.shape[-1], dtype=dtype)
        weights = torch.stack(conditionals) if conditionals else nothing
        return Solved(last.maximum.to(dtype), (weights, last.argmax.to(dtype)))

    @classmethod
    def marginals(cls, saved: Tensors, mask: Tensor | None) -> tuple[Tensors, Tensors]:
        """Compute the node marginals (B, T, K) and the pair marginals (B, T-1, i, j)."""
        conditionals, last = saved
        nodes = [last.unsqueeze(-2)]
        with without_autocast(last):
            for weights in reversed(conditionals.unbind(0)):
                nodes.append(torch.bmm(nodes[-1], weights))
        stacked = torch.stack(nodes[::-1]).squeeze(-2)
        # The total of a position is 1, and its rounding error grows with every step.
        total = stacked.sum(-1, keepdim=True)
        stacked = stacked / torch.where(total > 0, total, 1.0)
        pairs = conditionals * stacked[1:].unsqueeze(-1)
        found = _in_layout(stacked, pairs, mask)
        return found, (conditionals.view_as(conditionals), stacked)

    @classmethod
    def tangent(
        cls,
        saved: Tensors,
        mask: Tensor | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        # In float64, because the running derivative of `a` grows with the length, while the result
        # depends only on its differences between states.
        conditionals, nodes = (part.double() for part in saved)
        along = _directions(nodes, directions, mask)
        running, turns = along.nodes[0], []
        for weights, on_node, on_pair in zip(
            conditionals, along.nodes[1:], along.pairs, strict=True
        ):
            into = running.unsqueeze(-2) + on_pair
            turns.append(smooth_max_tangent(weights, into, cls.alpha))
            running = on_node + (weights * into).sum(-1)

        changes = [smooth_max_tangent(nodes[-1], running, cls.alpha)]
        pairs = []
        for t in range(len(turns) - 1, -1, -1):
            pair = turns[t] * nodes[t + 1].unsqueeze(-1)
            pair = pair + conditionals[t] * changes[-1].unsqueeze(-1)
            changes.append(pair.sum(-2))
            pairs.append(pair)
        stacked = torch.stack(pairs[::-1]) if pairs else torch.zeros_like(conditionals)
        on_nodes, on_pairs = _in_layout(torch.stack(changes[::-1]), stacked, mask)
        return on_nodes, on_pairs if wanted[1] else None


def _prepare(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return scores (T, B, K) and steps (T-1, B, j, i) in float64, with neutral padding."""
    unary = unary.double().transpose(0, 1)
    steps = transitions.double().permute(1, 0, 3, 2).expand(len(unary) - 1, -1, -1, -1)
    if mask is None:
        return unary, steps
    unary = keep(unary, mask.T)
    is_extra = torch.arange(unary.shape[-1], device=unary.device) > 0
    # A row with no real position has one labeling, the empty one, not K copies of it.
    empty = ~mask.any(-1, keepdim=True)
    start = torch.where(empty & is_extra, -torch.inf, unary[0])
    copy = torch.eye(unary.shape[-1], dtype=unary.dtype, device=unary.device).log()
    steps = torch.where(linked_steps(mask).T[..., None, None], steps, copy)
    return torch.cat([start.unsqueeze(0), unary[1:]]), steps


class _Along(NamedTuple):
    """A direction in the potentials, in the layout of the recursion."""

    nodes: Float[Tensor, "T B K"]
    pairs: Float[Tensor, "N B K K"]  # [t, b, j, i]


def _directions(
    nodes: Float[Tensor, "T B K"], directions: tuple[Tensor | None, ...], mask: Tensor | None
) -> _Along:
    on_nodes, on_pairs = directions
    length, batch, num_states = nodes.shape
    linked = None if mask is None else linked_steps(mask)
    return _Along(
        torch.zeros_like(nodes)
        if on_nodes is None
        else keep(on_nodes.double(), mask).transpose(0, 1),
        nodes.new_zeros(length - 1, batch, num_states, num_states)
        if on_pairs is None
        else keep(on_pairs.double(), linked).permute(1, 0, 3, 2),
    )


def _in_layout(nodes: Tensor, pairs: Tensor, mask: Tensor | None) -> Tensors:
    """Convert (T, B, K) and (T-1, B, j, i) to (B, T, K) and (B, T-1, i, j), with 0 on padding."""
    linked = None if mask is None else linked_steps(mask)
    return keep(nodes.transpose(0, 1), mask), keep(pairs.permute(1, 0, 3, 2), linked)


@lru_cache
def _make(alpha: float) -> Differentiable:
    passes = type("_PassesOfOrder", (_Passes,), {"alpha": alpha})
    return differentiable("sparse chain", passes, num_potentials=2)


# Created at import: torch.compile cannot create new ones while it traces.
_MADE = {alpha: _make(alpha) for alpha in (1.5, 2.0)}


def _sparse_chain(alpha: float) -> Differentiable:
    return _MADE[alpha] if alpha in _MADE else _make(alpha)

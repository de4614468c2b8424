"""The passes of the linear chain, in PyTorch operations: the reference on any device.

    edges         e[t, i, j] = transitions[t, i, j] + unary[t, j]
    inside        a[t, j]    = log sum_i exp( a[t-1, i] + e[t, i, j] ),      a[0] = unary[0]
    conditionals  q[t, i, j] = exp( a[t-1, i] + e[t, i, j] - a[t, j] )  =  p( y_{t-1} = i | y_t = j )
    outside       m[t-1, i]  = sum_j q[t, i, j] m[t, j]
    tangent       the derivative of m and of the pairs q m: two linear recursions over the same q

The log-space recursion is in float64, so a wide range of scores costs no accuracy. The
conditionals are probabilities; they and all later values have the dtype of the result. A masked
position becomes an edge that copies the state, which makes its neighbors adjacent. Its scores are
never read.

Axes: T positions and N = T - 1 steps (leading, to make a step one block of memory), B batch,
K states, S samples, k ranks.
References: Rabiner 1989 (forward-backward); Mensch & Blondel 2018, section 3.2 (tangents).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from ...masking import linked_steps
from .._derivatives import Solved, Tensors
from .._precision import result_dtype, without_autocast
from .._recursions import keep, softmax_or_zero

# Number of edge scores computed at a time, small enough for float64 temporaries to stay in cache:
# 2 to 3 times faster at K = 50, no difference at K = 2.
_EDGES_AT_ONCE = 1 << 17


# Up to this many states, dispatch takes more time than arithmetic in a step of a recursion.
_FEW_STATES = 8


class Chain(NamedTuple):
    """Prepared log-potentials: positions first, padding neutral."""

    unary: Float[Tensor, "T B K"]  # float64
    transitions: Float[Tensor, "N #B K K"]  # as given
    linked: Bool[Tensor, "N B 1 1"] | None  # None: every step joins its two positions


def prepare(
    unary: Float[Tensor, "B T K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
) -> Chain:
    """Put the positions first and make padding neutral."""
    num_steps = unary.shape[1] - 1
    unary = unary.transpose(0, 1).to(torch.float64, memory_format=torch.contiguous_format)
    transitions = transitions.transpose(0, 1).expand(num_steps, -1, -1, -1)
    if mask is None:
        return Chain(unary, transitions, None)
    unary = torch.where(mask.T.unsqueeze(-1), unary, 0.0)
    # A row with no real position has one labeling, the empty one, not K copies of it.
    is_extra = torch.arange(unary.shape[-1], device=unary.device) > 0
    empty = ~mask.any(-1, keepdim=True)
    start = torch.where(empty & is_extra, -torch.inf, unary[0])
    unary = torch.cat([start.unsqueeze(0), unary[1:]])
    return Chain(unary, transitions, linked_steps(mask).T[..., None, None])


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z: O(T K^2) work, O(K) state."""
    unary, transitions = potentials
    chain = prepare(unary, transitions, mask)
    alpha = chain.unary[0]
    for run in edges(chain):
        alpha = _advance(alpha, run)[-1]
    return torch.logsumexp(alpha, -1).to(result_dtype(unary, transitions))


def solve(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> Solved:
    """Compute log Z, conditionals (N, B, K, K) and marginals of the last position (B, K)."""
    unary, transitions = potentials
    dtype = result_dtype(unary, transitions)
    weights, alpha = conditionals(prepare(unary, transitions, mask), dtype)
    return Solved(torch.logsumexp(alpha, -1).to(dtype), (weights, softmax_or_zero(alpha, dtype)))


def marginals(saved: Tensors, mask: Bool[Tensor, "B T"] | None) -> tuple[Tensors, Tensors]:
    """Compute the node marginals (B, T, K) and the pair marginals (B, N, K, K)."""
    weights, last = saved
    nodes = _outside(weights, last)
    pairs = weights * nodes[1:].unsqueeze(-2)
    found = (keep(nodes.transpose(0, 1), mask), keep(pairs.transpose(0, 1), _links(mask)))
    return found, (weights.view_as(weights), nodes)


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B T"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivatives of both marginals, each in the layout of its marginals."""
    weights, nodes = saved
    on_nodes, on_pairs = directions
    along = _push(
        weights,
        nodes,
        None if on_nodes is None else _direction(on_nodes, mask, nodes.dtype),
        None if on_pairs is None else _direction(on_pairs, _links(mask), nodes.dtype),
        want_pairs=wanted[1],
    )
    pairs = None if along.pairs is None else keep(along.pairs.transpose(0, 1), _links(mask))
    return keep(along.nodes.transpose(0, 1), mask), pairs


def _links(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else linked_steps(mask)


def _direction(grad: Tensor, kept: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Convert a gradient (B, T, ...) to a direction of the recursions (T, B, ...)."""
    return keep(grad, kept).to(dtype).transpose(0, 1).contiguous()


def edges(chain: Chain) -> Iterator[Tensor]:
    """Yield the edge scores (C, B, K, K) in float64, C steps at a time."""
    _, batch, num_states = chain.unary.shape
    chunk = max(1, _EDGES_AT_ONCE // max(1, batch * num_states**2))
    copy = torch.eye(num_states, dtype=torch.float64, device=chain.unary.device).log()
    for first in range(0, len(chain.transitions), chunk):
        # Contiguous by step: the small inner loops of a strided block take twice the time.
        scores = chain.transitions[first : first + chunk].to(
            torch.float64, memory_format=torch.contiguous_format
        )
        if chain.linked is not None:
            scores = torch.where(chain.linked[first : first + chunk], scores, copy)
        yield scores + chain.unary[first + 1 : first + 1 + chunk].unsqueeze(-2)


def _advance(alpha: Tensor, run: Float[Tensor, "C B K K"]) -> list[Tensor]:
    """Return the inside scores (B, K) before the first of C steps and after each step."""
    alphas = [alpha]
    for edge in run.unbind(0):
        joined = alphas[-1].unsqueeze(-1) + edge
        # With two states, one fused operation does the work of six.
        if joined.shape[-2] == 2:
            alphas.append(torch.logaddexp(*joined.unbind(-2)))
        else:
            alphas.append(torch.logsumexp(joined, dim=-2))
    return alphas


def conditionals(
    chain: Chain, dtype: torch.dtype
) -> tuple[Float[Tensor, "N B K K"], Float[Tensor, "B K"]]:
    """Compute q[t, i, j] = p(y_{t-1} = i | y_t = j, prefix), 0 for unreachable j; and the inside
    scores of the last position.
    """
    alpha = chain.unary[0]
    weights = [alpha.new_empty(0, *alpha.shape, alpha.shape[-1], dtype=dtype)]
    for run in edges(chain):
        alphas = torch.stack(_advance(alpha, run))
        # An unreachable state is normalized by +inf, which gives weight exp(-inf) = 0; subtracting
        # its inside score of -inf would give NaN.
        normalizer = torch.where(alphas == -torch.inf, torch.inf, alphas)[1:].unsqueeze(-2)
        joined = alphas[:-1].unsqueeze(-1) + run
        weights.append((joined - normalizer).to(dtype).exp())
        alpha = alphas[-1]
    return torch.cat(weights), alpha


def _outside(
    conditionals: Float[Tensor, "N B K K"], last: Float[Tensor, "B K"]
) -> Float[Tensor, "N+1 B K"]:
    """Compute the node marginals, from the last position back."""
    nodes = [last.unsqueeze(-1)]
    with without_autocast(last):
        for weights in reversed(conditionals.unbind(0)):
            nodes.append(torch.bmm(weights, nodes[-1]))
    stacked = torch.stack(nodes[::-1]).squeeze(-1)
    # The total of a position is 1, and its rounding error grows with every step: normalize. If no
    # labeling is possible, the total is 0 and stays 0.
    total = stacked.sum(-1, keepdim=True)
    return stacked / torch.where(total > 0, total, 1.0)


class _Tangents(NamedTuple):
    """Derivatives along one direction."""

    nodes: Float[Tensor, "T B K"]
    pairs: Float[Tensor, "N B K K"] | None


def _push(
    conditionals: Float[Tensor, "N B K K"],
    nodes: Float[Tensor, "T B K"],
    node_direction: Float[Tensor, "T B K"] | None,
    pair_direction: Float[Tensor, "N B K K"] | None,
    *,
    want_pairs: bool,
) -> _Tangents:
    """Compute the derivative of node and pair marginals along a direction g in the potentials.

    With G(y) the sum of g over the parts of y, the derivative is Cov(part, G). Centering each part
    of g makes E[G] = 0. The covariance then follows from two vectors per position, which are linear
    in q and need neither exp nor division:

        past[t, j]   = E[ G up to t | y_t = j ]   = g[t, j] + sum_i q[t, i, j] (g[t, i, j] + past[t-1, i])
        future[t, i] = E[ G from t on; y_t = i ]  = m[t, i] g[t, i]
                                                    + sum_j q[t+1, i, j] (m[t+1, j] g[t+1, i, j] + future[t+1, j])
    """
    own, means, joint, arrive, leave = 0.0, 0.0, None, None, None
    if node_direction is not None:
        arrive = node_direction - (nodes * node_direction).sum(-1, keepdim=True)
        own = leave = nodes * arrive
    if pair_direction is not None:
        weighted = conditionals * pair_direction
        joint = weighted * nodes[1:].unsqueeze(-2)
        onto, out_of = weighted.sum(-2), joint.sum(-1)
        means = out_of.sum(-1, keepdim=True)
        onto = pad(onto - means, (0, 0, 0, 0, 1, 0))
        out_of = pad(out_of - means * nodes[:-1], (0, 0, 0, 0, 0, 1))
        arrive = onto if arrive is None else arrive + onto
        leave = out_of if leave is None else leave + out_of
    assert arrive is not None, "a tangent needs a direction"
    assert leave is not None, "a tangent needs a direction"
    past, future = _accumulate(arrive, leave, conditionals)
    # Both have mean 0; removing the rounding error of the mean keeps it from growing with T.
    past = past - (nodes * past).sum(-1, keepdim=True)
    future = future - nodes * future.sum(-1, keepdim=True)

    node_tangent = torch.addcmul(future - own, nodes, past)
    if not want_pairs:
        return _Tangents(node_tangent, None)
    before, after = (past[:-1] - means).unsqueeze(-1), future[1:].unsqueeze(-2)
    outer = torch.addcmul(after, before, nodes[1:].unsqueeze(-2))
    if joint is None:
        return _Tangents(node_tangent, conditionals * outer)
    return _Tangents(node_tangent, torch.addcmul(joint, conditionals, outer))


def _accumulate(
    arrive: Float[Tensor, "T B K"],
    leave: Float[Tensor, "T B K"],
    conditionals: Float[Tensor, "N B K K"],
) -> tuple[Float[Tensor, "T B K"], Float[Tensor, "T B K"]]:
    """Compute past[t] = arrive[t] + q[t]' past[t-1] and future[t] = leave[t] + q[t+1] future[t+1]."""
    forward = conditionals.transpose(-1, -2)
    if conditionals.shape[-1] > _FEW_STATES:
        past = _run(arrive, forward.unbind(0))
        return past, _run(leave.flip(0), conditionals.unbind(0)[::-1]).flip(0)
    # The two recursions do not depend on each other. With few states, dispatch dominates the time of
    # a step, and copying the conditionals to run both as one batch is faster than twice the steps.
    weights = torch.cat([forward, conditionals.flip(0)], 1)
    past, future = _run(torch.cat([arrive, leave.flip(0)], 1), weights.unbind(0)).chunk(2, 1)
    return past, future.flip(0)


def _run(steps: Float[Tensor, "T B K"], weights: Sequence[Tensor]) -> Float[Tensor, "T B K"]:
    """Compute x[t] = steps[t] + weights[t-1] x[t-1], with a matrix (B, K, K) for each step."""
    first, *rest = steps.unsqueeze(-1).unbind(0)
    totals = [first]
    with without_autocast(steps):
        for step, weight in zip(rest, weights, strict=True):
            totals.append(torch.baddbmm(step, weight, totals[-1]))
    return torch.stack(totals).squeeze(-1)

"""The passes of the spanning tree, in PyTorch operations: the reference on any device.

By the matrix-tree theorem, Z is the determinant of a Laplacian. Eliminating one word after another
gives its LU factors; it needs no subtraction and so works in log-space. Let w[h, d] be the weight
of the arc from head h to word d. Eliminating word k attaches every dependent of k to a head of k:

    w[h, d]  becomes  w[h, d] + w[k, d] q[h, k],     q[h, k] = w[h, k] / W[k],     W[k] = sum_h w[h, k]

and Z = prod_k W[k]. An arc (h, d) is read only when its first end, k = min(h, d), is eliminated.
Each entry is therefore one sum, over the arc and its detours through pivots j before k:

    entries   s[h, d] = log( exp( arcs[h, d] ) + sum over j < k of exp( s[j, d] + log q[h, j] ) )
    shares    f[h, d, j] = exp( s[j, d] + log q[h, j] - s[h, d] );    own share exp( arcs[h, d] - s[h, d] )
    marginals own share times how often the entry is used: products of shares, last pivot to first
    tangent   the derivative of entries, then of uses: linear over the same shares, with no exp

For exactly one root arc, scale the root arcs by e and let e go to 0: the leading term of Z is e
times the sum over trees with one root arc. The root arcs then have weight 0 in W[k], unless word k
has no other head left and is "closed": W[k] is its root arc. The dependents of a closed word attach
to the root at no further cost, in a second root row. If two words are closed, there is no tree.

Tables hold, at [k, side, x], the arc between pivot k and a node x after it: x is the head on side
0, and k is the head on side 1, where the roots have a dummy entry. Entries with x not after k are
unused. Pivots come first and the batch last: a pivot then reads and writes long runs of memory.

Axes: B batch, n words, N = words and roots (the given root arcs last), H nodes after pivot k.
References: Tutte 1984 (matrix-tree theorem); Grassmann, Taksar & Heyman 1985 (elimination without
subtraction); Koo et al. 2007 (single root).
"""

from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .._derivatives import Solved, Tensors
from .._precision import result_dtype
from ._shift import shift

# Subtract this number instead of -inf: the result is -inf, but -inf - -inf would be NaN.
LOWEST = torch.finfo(torch.float64).min


class Eliminated(NamedTuple):
    """The results of eliminating all words."""

    log_partition: Float[Tensor, " B"]
    log_q: Float[Tensor, "n N B"]
    closed: Bool[Tensor, "n B"]
    shares: list[Tensor]  # for each k (k+1, 2, H, B), the own share last; may be empty


class SpanningPasses:
    """The passes for trees with one root arc, or with any number of root arcs.

    The two are classes and not instances, because torch.compile does not pass our instances into a
    Function.
    """

    single_root: ClassVar[bool]

    @classmethod
    def log_partition(
        cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None
    ) -> Float[Tensor, " B"]:
        """Compute only log Z: O(n^3) work, O(n^2) memory."""
        (arcs,) = potentials
        shifted = shift(arcs.double(), mask, single_root=cls.single_root)
        done = cls._eliminate(cls._tabulate(shifted.arcs, mask, -torch.inf), mask, None)
        return (done.log_partition + shifted.total).to(result_dtype(arcs))

    @classmethod
    def solve(cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Solved:
        """Compute log Z; save the derivatives of log W, as choices (n, N, B), whether words are open
        (n, B), and the shares at each pivot.
        """
        (arcs,) = potentials
        dtype = result_dtype(arcs)
        shifted = shift(arcs.double(), mask, single_root=cls.single_root)
        done = cls._eliminate(cls._tabulate(shifted.arcs, mask, -torch.inf), mask, dtype)
        choices = _after_pivot(done.log_q.exp())
        if cls.single_root:
            closed = done.closed.unsqueeze(1)
            choices = torch.where(closed, 0.0, choices)[:, :-1]
            choices = torch.cat([choices, closed.to(choices.dtype)], 1)
        # If there is no tree, all choices are 0, and the later passes return 0.
        choices = torch.where(done.log_partition == -torch.inf, 0.0, choices).to(dtype)
        saved = (choices, (~done.closed).to(dtype), *done.shares)
        return Solved((done.log_partition + shifted.total).to(dtype), saved)

    @classmethod
    def marginals(cls, saved: Tensors, mask: Bool[Tensor, "B n"] | None) -> tuple[Tensors, Tensors]:
        """Compute the arc marginals (B, n+1, n+1)."""
        choices, is_open, *shares = saved
        uses = torch.stack([choices, choices], 1).zero_()
        spares, found = torch.zeros_like(is_open), torch.zeros_like(uses)
        for k in reversed(range(len(shares))):
            column = uses[k]
            heads = column[0]
            # Each word has one head: the probability that the detours do not use goes to W.
            spare = 1 - is_open[k] * heads.sum(0)
            heads += choices[k] * spare
            spares[k] = spare
            _spread(uses, found, k, shares[k] * column[:, k + 1 :])
        # Rounding can make a probability near 0 slightly negative.
        arcs = _untabulate(found).clamp(min=0)
        return (arcs,), (uses, spares, *(part.view_as(part) for part in saved))

    @classmethod
    def tangent(
        cls,
        saved: Tensors,
        mask: Bool[Tensor, "B n"] | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        """Compute the derivative of the marginals, in the layout of the marginals."""
        (direction,) = directions
        if direction is None:
            return (None,)
        uses, spares, choices, is_open, *shares = saved
        given = cls._tabulate(direction.to(uses.dtype), mask, 0.0)
        table, changes = cls._push(given, choices, is_open, shares)

        flows, found = torch.zeros_like(uses), torch.zeros_like(uses)
        # The changes of the choices sum to 0 over the heads, so they can be set in advance.
        flows[:, 0] = choices * table[:, 0] * spares.unsqueeze(1)
        shifts = uses * changes
        for k in reversed(range(len(shares))):
            column = flows[k]
            lost = is_open[k] * column[0].sum(0)
            column[0] -= choices[k] * lost
            table[k] = given[k]
            moved = _detours(table, k) * uses[k, :, k + 1 :]
            moved += (column - shifts[k])[:, k + 1 :]
            _spread(flows, found, k, moved.mul_(shares[k]))
        return (_untabulate(found),)

    @classmethod
    def _push(
        cls, given: Tensor, choices: Tensor, is_open: Tensor, shares: list[Tensor]
    ) -> tuple[Float[Tensor, "n 2 N B"], Float[Tensor, "n 2 N B"]]:
        """Compute the derivatives along `given` of the table in `_eliminate`, and of the entries."""
        table, changes = given.clone(), torch.zeros_like(given)
        for k, share in enumerate(shares):
            change = _detours(table, k).mul_(share).sum(0)
            changes[k, :, k + 1 :] = change
            heads = change[0]
            heads -= (choices[k, k + 1 :] * heads).sum(0)
            if cls.single_root:
                heads[-2] *= is_open[k]  # a closed word leads to the root with probability 1
            table[k, :, k + 1 :] = change
        return table, changes

    @classmethod
    def _tabulate(
        cls, arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B m-1"] | None, nothing: float
    ) -> Float[Tensor, "m-1 2 N B"]:
        """Write a value for each arc to both sides of a table, with 0 on the diagonal and `nothing` on
        arcs that no tree contains.
        """
        arcs = arcs.permute(1, 2, 0)
        root, words = arcs[0, 1:], arcs[1:, 1:]
        if mask is not None:
            real = mask.T
            root = torch.where(real, root, nothing)
            words = torch.where(real & real.unsqueeze(1), words, nothing)
        diagonal = torch.eye(len(words), dtype=torch.bool, device=arcs.device).unsqueeze(-1)
        words = torch.where(diagonal, 0.0, words)
        root = root.unsqueeze(1)
        no_root = torch.full_like(root, nothing)
        roots = [no_root, root] if cls.single_root else [root]
        heads = torch.cat([words.transpose(0, 1), *roots], 1)
        return torch.stack([heads, torch.cat([words, *[no_root] * len(roots)], 1)], 1)

    @classmethod
    def _eliminate(
        cls, table: Float[Tensor, "n 2 N B"], mask: Tensor | None, keep: torch.dtype | None
    ) -> Eliminated:
        """Eliminate all words in turn; keep the shares in the dtype `keep`, or not at all. `table[k]`
        holds the arcs of pivot k before its elimination, and log q and s after it.
        """
        open_weights, log_weights, shares = [], [], []
        for k in range(len(table)):
            terms = _detours(table, k)
            peak = terms.amax(0).clamp(min=LOWEST)
            terms = terms.sub_(peak).exp_()
            total = terms.sum(0)
            if keep is not None:  # the total is at least 1, or all terms are 0
                shares.append(terms.div_(total.clamp(min=1)).to(keep))
            entries = total.log_().add_(peak)
            heads = entries[0]
            open_weight = weight = torch.logsumexp(heads[:-1] if cls.single_root else heads, 0)
            if cls.single_root:
                closed = open_weight == -torch.inf
                weight = torch.where(closed, heads[-1], open_weight)
                heads -= weight.clamp(min=LOWEST)
                heads[-2].masked_fill_(closed, 0.0)
                heads[-1].masked_fill_(closed, -torch.inf)
            else:
                heads -= weight.clamp(min=LOWEST)
            table[k, :, k + 1 :] = entries
            open_weights.append(open_weight)
            log_weights.append(weight)
        weights, closed = torch.stack(log_weights), torch.stack(open_weights) == -torch.inf
        if mask is not None:  # a padded word is a row and a column of the identity
            weights, closed = torch.where(mask.T, weights, 0.0), closed & mask.T
        log_partition = weights.sum(0)
        if cls.single_root:
            log_partition = torch.where(closed.sum(0) > 1, -torch.inf, log_partition)
        return Eliminated(log_partition, table[:, 0], closed, shares)


@final
class SingleRoot(SpanningPasses):
    """Exactly one arc from the root."""

    single_root = True


@final
class MultiRoot(SpanningPasses):
    """Any number of arcs from the root."""

    single_root = False


def _detours(table: Float[Tensor, "n 2 N B"], k: int) -> Float[Tensor, "{k+1} 2 H B"]:
    """Return, for each arc at pivot k, the sum of the two arcs of its detour through each earlier pivot;
    the last entry is the arc itself, because the diagonal is 0.
    """
    earlier = table[: k + 1]
    return earlier[:, :, k + 1 :] + earlier[:, :, k : k + 1].flip(1)


def _spread(
    flows: Float[Tensor, "n 2 N B"],
    found: Float[Tensor, "n 2 N B"],
    k: int,
    moved: Float[Tensor, "j 2 H B"],
) -> None:
    """Apply the adjoint of `_detours`: add the use of a detour to both of its arcs in `flows`, and write
    the use of the arc itself to `found`.
    """
    found[k, :, k + 1 :] = moved[k]
    if k > 0:
        detours, earlier = moved[:k], flows[:k]
        earlier[:, :, k + 1 :] += detours
        earlier[:, :, k] += detours.sum(2).flip(1)


def _after_pivot(table: Float[Tensor, "n N B"]) -> Float[Tensor, "n N B"]:
    """Set the unused entries of the table, at the nodes up to the pivot, to 0."""
    nodes = torch.arange(table.shape[1], device=table.device).unsqueeze(-1)
    return torch.where(nodes > nodes[: len(table), None], table, 0.0)


def _untabulate(table: Float[Tensor, "n 2 N B"]) -> Float[Tensor, "B n+1 n+1"]:
    """Convert a table to a matrix of arcs, with 0 where there is no arc."""
    heads, dependents = table.unbind(1)
    n = len(table)
    words = heads[:, :n].transpose(0, 1) + dependents[:, :n]
    arcs = torch.cat([heads[:, -1].unsqueeze(0), words])
    return torch.cat([torch.zeros_like(arcs[:, :1]), arcs], 1).permute(2, 0, 1)

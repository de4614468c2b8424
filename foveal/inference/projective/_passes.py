"""The passes of projective dependency trees (Eisner), in PyTorch operations: the reference on any
device.

A span i .. j = i + k is *incomplete* if an arc joins its ends (the arc starts at the head)
and *complete* if its head has all its dependents on that side. With a[h, d] = exp of the
score of the arc from head h to dependent d, and all sums stored as logarithms:

    join        J[i, j]  = sum_s  R[i, i+s]  L[i+s+1, j]        s = 0 .. k-1
    incomplete  I>[i, j] = J[i, j] a[i, j],      I<[i, j] = J[i, j] a[j, i]
    complete    R[i, j]  = sum_s  I>[i, i+s+1]  R[i+s+1, j]     head i
                L[i, j]  = sum_s  L[i, i+s]  I<[i+s, j]         head j

A tree with any number of roots is R[0, n], the root being node 0. With a single root, the charts
hold only the words, and the root chooses its word r: Z = sum_r a[0, r] L[1, r] R[r, n].

All three sums join a span that starts at i to one that ends at j, so they need two charts, one
indexed by starts and one by ends, with matching channels:

    starts[w, :, i]     =  ( I>[i, i+w+1],  R[i, i+w],  L[i, i+w] )
    ends[N-1-w, :, j]   =  ( R[j-w, j],     L[j-w, j],  I<[j-w-1, j] )
    starts[s, :, i] ends[N-k+s, :, j]   are the terms of   ( R,  J,  L )  of i .. j

and a width takes a few operations on blocks. The terms that need an incomplete span of the
same width k are missing from that sum (its entry is still 0) and are added afterwards: their
weights are `fresh`. Weights are p( split | span ): the outside pass sends probability down them,
the tangent pass is linear in them (`push`). The inside recursion is in float64, so a wide
range of scores costs no accuracy; the weights and all later values have the dtype of the result.

A masked word attaches to its neighbor with score 0. Such an arc crosses no other, so trees over the
real words and trees over all words correspond one to one.

Axes: B batch (last in charts), n words, m = n + 1, N nodes of the charts (n, or m including the
root), P = N (N - 1) / 2 spans and H = 3 sum_k k (N - k) splits, both ordered by width.
References: Eisner 1996, 2000; Mensch & Blondel 2018, section 3.2 (tangents).
"""

import math
from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from .._derivatives import Solved, Tensors
from .._precision import result_dtype


class Spans(NamedTuple):
    """The P spans of two nodes or more, by width and then by start."""

    num_nodes: int
    width: Int[Tensor, " P"]
    start: Int[Tensor, " P"]
    end: Int[Tensor, " P"]

    @classmethod
    def of(cls, num_nodes: int, device: torch.device) -> "Spans":
        """Return all spans of two nodes or more."""
        row, column = torch.triu_indices(num_nodes - 1, num_nodes - 1, device=device).unbind(0)
        return cls(num_nodes, row + 1, column - row, column + 1)

    def blocks(self, numbers: Float[Tensor, "C P B"]) -> tuple[Tensor, ...]:
        """Return the numbers (C, (N - k) B) on the spans of each width k = 1 .. N - 1."""
        batch = numbers.shape[-1]
        sizes = [count * batch for count in range(self.num_nodes - 1, 0, -1)]
        return numbers.flatten(1).split(sizes, 1)


class Arcs(NamedTuple):
    """Numbers on arcs, in the order of the spans whose ends they join."""

    pairs: Float[Tensor, "2 P B"]  # rightward arcs, leftward arcs
    root: Float[Tensor, "N B"] | None  # the root arcs; None if the root is node 0

    @classmethod
    def of(cls, arcs: Float[Tensor, "B m m"], spans: Spans) -> "Arcs":
        """Convert from the layout of the potentials."""
        arcs = arcs.permute(1, 2, 0)
        single_root = spans.num_nodes < len(arcs)
        nodes = arcs[1:, 1:] if single_root else arcs
        pairs = torch.stack([nodes[spans.start, spans.end], nodes[spans.end, spans.start]])
        return cls(pairs, arcs[0, 1:].contiguous() if single_root else None)

    def square(self, spans: Spans) -> Float[Tensor, "B m m"]:
        """Convert to the layout of the potentials."""
        size = spans.num_nodes if self.root is None else spans.num_nodes + 1
        square = self.pairs.new_zeros(size, size, self.pairs.shape[-1])
        nodes = square
        if self.root is not None:
            square[0, 1:] = self.root
            nodes = square[1:, 1:]
        nodes[spans.start, spans.end] = self.pairs[0]
        nodes[spans.end, spans.start] = self.pairs[1]
        return square.permute(2, 0, 1).contiguous()


def readable(
    size: int, mask: Bool[Tensor, "B n"] | None, device: torch.device
) -> Bool[Tensor, "#B {size} {size}"]:
    """Return True on the arcs that some tree contains: between real words, or from the root to one."""
    index = torch.arange(size, device=device)
    read = (index.unsqueeze(-1) != index) & (index > 0)
    if mask is None:
        return read.unsqueeze(0)
    real = pad(mask, (1, 0), value=True)
    return read & real.unsqueeze(-1) & real.unsqueeze(-2)


def prepare(
    arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B n"] | None, *, single_root: bool
) -> tuple[Arcs, Spans]:
    """Return the scores in float64, with -inf on unread arcs and 0 on the arcs of masked words."""
    size = arcs.shape[-1]
    fill = arcs.new_full((), -torch.inf, dtype=torch.float64)
    if mask is not None:
        # A masked word after the first real word attaches to its left neighbor, a word before it to
        # its right neighbor; if no word is real, the last word attaches to the root.
        index = torch.arange(size, device=arcs.device)
        words = index[1:]
        before = mask.cumsum(-1) == 0
        neighbor = torch.where(before, (words + 1) % size, words - 1)
        hangs = (index.unsqueeze(-1) == neighbor.unsqueeze(-2)) & ~mask.unsqueeze(-2)
        fill = torch.where(pad(hangs, (1, 0)), 0.0, fill)
    scores = torch.where(readable(size, mask, arcs.device), arcs.double(), fill)
    spans = Spans.of(size - 1 if single_root else size, arcs.device)
    return Arcs.of(scores, spans), spans


class Chart:
    """The two charts in one block of memory, and strided views of a width of both at once.

    Index 0 of a view is the chart by starts, index 1 the chart by ends. The spans of a width and the
    batch share one axis of the views.
    """

    def __init__(self, both: Float[Tensor, "2 N 3 N B"]) -> None:
        """Wrap a contiguous tensor."""
        _, num_nodes, _, _, self.batch = both.shape
        self.both, self.num_nodes = both, num_nodes
        self.channel = num_nodes * self.batch
        self.row = 3 * self.channel
        self.size = num_nodes * self.row

    @classmethod
    def full(cls, like: Float[Tensor, "*any B"], num_nodes: int, value: float) -> "Chart":
        """Create charts filled with one value."""
        return cls(like.new_full((2, num_nodes, 3, num_nodes, like.shape[-1]), value))

    @property
    def starts(self) -> Float[Tensor, "N 3 N B"]:
        """Return the spans by their starts: I>, R and L."""
        return self.both[0]

    @property
    def ends(self) -> Float[Tensor, "N 3 N B"]:
        """Return the spans by their ends: R, L and I<."""
        return self.both[1]

    def parts(self, width: int) -> Tensor:
        """Return the left and the right part of every split of every span, (2, k, 3, (N - k) B)."""
        count = self.num_nodes - width
        apart = self.size + count * self.row + width * self.batch
        shape = (2, width, 3, count * self.batch)
        return self.both.as_strided(shape, (apart, self.row, self.channel, 1), 0)

    def other_parts(self, width: int) -> Tensor:
        """Return the parts with the right part first, for charts in reverse order."""
        count = self.num_nodes - width
        offset = count * self.row + width * self.batch
        shape = (2, width, 3, count * self.batch)
        return self.both.as_strided(shape, (self.size - offset, self.row, self.channel, 1), offset)

    def complete(self, width: int) -> Tensor:
        """Return R and L in both charts, (2, 2, (N - k) B)."""
        count = self.num_nodes - width
        offset = width * self.row + self.channel
        apart = self.size + (count - 1) * self.row + width * self.batch - offset
        return self.both.as_strided((2, 2, count * self.batch), (apart, self.channel, 1), offset)

    def incomplete(self, width: int) -> Tensor:
        """Return I> and I<, (2, (N - k) B)."""
        count = self.num_nodes - width
        offset = (width - 1) * self.row
        apart = self.size + count * self.row + 2 * self.channel + width * self.batch - offset
        return self.both.as_strided((2, count * self.batch), (apart, 1), offset)

    def pairs(self, spans: Spans) -> Float[Tensor, "2 P B"]:
        """Return the numbers on all incomplete spans."""
        forth = self.starts[:, 0][spans.width - 1, spans.start]
        back = self.ends[:, 2][self.num_nodes - spans.width, spans.end]
        return torch.stack([forth, back])

    def put_pairs(self, pairs: Float[Tensor, "2 P B"], spans: Spans) -> None:
        """Write numbers to all incomplete spans."""
        self.starts[:, 0][spans.width - 1, spans.start] = pairs[0]
        self.ends[:, 2][self.num_nodes - spans.width, spans.end] = pairs[1]


class Weights(NamedTuple):
    """The probabilities p( split | span ), 0 for an impossible span."""

    splits: Float[Tensor, "H B"]
    fresh: Float[Tensor, "2 P B"]  # the shares of I> in R, of I< in L
    chosen: Float[Tensor, "#N B"]  # p(word of the root), or whether a tree exists: 1 or 0

    def blocks(self, spans: Spans) -> list[tuple[Tensor, Tensor]]:
        """Return splits (k, 3, (N - k) B) and fresh (2, (N - k) B) of each width k = 1 .. N - 1."""
        num_nodes, batch = spans.num_nodes, self.splits.shape[-1]
        sizes = [3 * width * (num_nodes - width) for width in range(1, num_nodes)]
        blocks = zip(self.splits.split(sizes), spans.blocks(self.fresh), strict=True)
        return [
            (splits.view(width, 3, (num_nodes - width) * batch), fresh)
            for width, (splits, fresh) in enumerate(blocks, start=1)
        ]


def inside(arcs: Arcs, spans: Spans, weights: Weights | None) -> Chart:
    """Compute log-space sums, from the narrowest span to the widest, in O(N^3) time and with a bounded
    number of operations per width. If `weights` is given, fill it, except `chosen`.
    """
    chart = Chart.full(arcs.pairs, spans.num_nodes, -torch.inf)
    chart.starts[0, 1:].zero_()
    chart.ends[-1, :2].zero_()
    blocks = None if weights is None else weights.blocks(spans)
    lowest = torch.finfo(arcs.pairs.dtype).min
    for width, scores in enumerate(spans.blocks(arcs.pairs), start=1):
        left, right = chart.parts(width).unbind(0)
        joined = left + right
        # If all are -inf, subtract a finite number: -inf - -inf would be NaN.
        highest = joined.amax(0).clamp_min_(lowest)
        terms = joined.sub_(highest).exp_()
        total = terms.sum(0).log_().add_(highest)
        outer, inner = total[::2], total[1]
        incomplete = scores + inner
        complete = torch.logaddexp(outer, incomplete)
        chart.incomplete(width).copy_(incomplete)
        chart.complete(width).copy_(complete)
        if blocks is not None:
            splits, fresh = blocks[width - 1]
            outer.copy_(complete)
            total.clamp_min_(lowest)
            splits.copy_(terms.mul_(highest.sub_(total).exp_()))
            fresh.copy_(incomplete.sub_(outer).exp_())
    return chart


def whole(chart: Chart, root: Float[Tensor, "N B"] | None) -> Float[Tensor, "#N B"]:
    """Return the log-space terms of Z: one for each word of the root, or a single one."""
    if root is None:
        return chart.starts[-1, 1, 0].unsqueeze(0)
    return root + chart.starts[:, 2, 0] + chart.ends[:, 0, -1]


class Nodes(NamedTuple):
    """Numbers on R, J and L of every span, and views of them by width."""

    numbers: Float[Tensor, "3 P B"]
    every: tuple[Tensor, ...]  # (3, (N - k) B)
    outer: tuple[Tensor, ...]  # R and L, (2, (N - k) B)
    inner: tuple[Tensor, ...]  # J, (1, (N - k) B)

    @classmethod
    def like(cls, fresh: Float[Tensor, "2 P B"], spans: Spans) -> "Nodes":
        """Allocate numbers without filling them."""
        numbers = fresh.new_empty(3, *fresh.shape[1:])
        views = (numbers, numbers[::2], numbers[1:2])
        return cls(numbers, *(spans.blocks(view) for view in views))

    def receive(self, chart: Chart, width: int, fresh: Tensor) -> Tensor:
        """Pass the sums of R and L on to I> and I<, then write the sums of R, J and L of a width."""
        outer = self.outer[width - 1].copy_(chart.complete(width).sum(0))
        incomplete = chart.incomplete(width).add_(fresh * outer)
        self.inner[width - 1].copy_(incomplete.sum(0))
        return self.every[width - 1]


def outside(
    weights: Weights, spans: Spans, *, single_root: bool
) -> tuple[Arcs, Float[Tensor, "3 P B"]]:
    """Distribute the probability of each span over its parts, from the widest to the narrowest span.

    Return the probabilities of the arcs, and of R, J and L.
    """
    chart = Chart.full(weights.fresh, spans.num_nodes, 0.0)
    if single_root:
        chart.starts[:, 2, 0] = weights.chosen
        chart.ends[:, 0, -1] = weights.chosen
    else:
        chart.starts[-1, 1, 0] = weights.chosen[0]
    nodes = Nodes.like(weights.fresh, spans)
    blocks = weights.blocks(spans)
    for width in range(spans.num_nodes - 1, 0, -1):
        splits, fresh = blocks[width - 1]
        chart.parts(width).add_(splits * nodes.receive(chart, width, fresh))
    return Arcs(chart.pairs(spans), weights.chosen if single_root else None), nodes.numbers


def push(
    weights: Weights, nodes: Float[Tensor, "3 P B"], arcs: Arcs, direction: Arcs, spans: Spans
) -> Arcs:
    """Compute the derivative of the arc marginals along a direction g in the scores: Cov(arc, G), with
    G(tree) the sum of g over the arcs of a tree. It is linear in the weights: no exp, no division.

        below[span] = E[ G in the span | span ]        the mean of `below` over its splits
        above[span] = E[ G outside the span; span ]
        above of a part receives  q ( above of the span + m below of the other part )

    where m is the probability of the span and E[G] = 0.
    """
    blocks = weights.blocks(spans)
    below = _push_inside(blocks, direction, spans)
    above = Chart.full(nodes, spans.num_nodes, 0.0)
    # Count an arc as outside of its span: `above` of J is then a sum over both directions.
    above.put_pairs(arcs.pairs * direction.pairs, spans)
    root = None
    if direction.root is not None:
        chosen, left, right = weights.chosen, below.starts[:, 2, 0], below.ends[:, 0, -1]
        mean = (chosen * (direction.root + left + right)).sum(0)
        rest = chosen * (direction.root - mean)
        above.starts[:, 2, 0] = torch.addcmul(rest, chosen, right)
        above.ends[:, 0, -1] = torch.addcmul(rest, chosen, left)
        root = torch.addcmul(rest, chosen, left + right)
    else:
        above.starts[-1, 1, 0] = -weights.chosen[0] * below.starts[-1, 1, 0]
    others = Chart(below.both.flip(0))
    rows, changes = spans.blocks(nodes), Nodes.like(weights.fresh, spans)
    for width in range(spans.num_nodes - 1, 0, -1):
        splits, fresh = blocks[width - 1]
        change = changes.receive(above, width, fresh)
        change = torch.addcmul(change, rows[width - 1], others.other_parts(width))
        above.parts(width).add_(change.mul_(splits))
    inner = below.pairs(spans) - direction.pairs
    return Arcs(torch.addcmul(above.pairs(spans), arcs.pairs, inner), root)


def _push_inside(blocks: list[tuple[Tensor, Tensor]], direction: Arcs, spans: Spans) -> Chart:
    """Compute the derivative of the inside pass: E[ G in the span | span ]."""
    chart = Chart.full(direction.pairs, spans.num_nodes, 0.0)
    for width, scores in enumerate(spans.blocks(direction.pairs), start=1):
        splits, fresh = blocks[width - 1]
        left, right = chart.parts(width).unbind(0)
        total = (left + right).mul_(splits).sum(0)
        incomplete = scores + total[1]
        chart.incomplete(width).copy_(incomplete)
        chart.complete(width).copy_(torch.addcmul(total[::2], fresh, incomplete))
    return chart


class ProjectivePasses:
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
        ready, spans = prepare(arcs, mask, single_root=cls.single_root)
        return whole(inside(ready, spans, None), ready.root).logsumexp(0).to(result_dtype(arcs))

    @classmethod
    def solve(cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Solved:
        """Compute the log-partition and the weights."""
        (arcs,) = potentials
        dtype = result_dtype(arcs)
        ready, spans = prepare(arcs, mask, single_root=cls.single_root)
        num_splits = spans.num_nodes * (spans.num_nodes**2 - 1) // 2
        weights = Weights(
            ready.pairs.new_empty(num_splits, len(arcs), dtype=dtype),
            torch.empty_like(ready.pairs, dtype=dtype),
            ready.pairs.new_empty(0, len(arcs)),
        )
        chosen = whole(inside(ready, spans, weights), ready.root)
        total = chosen.logsumexp(0)
        shift = total.clamp_min(torch.finfo(total.dtype).min)  # as in `inside`
        probability = (chosen - shift).exp().to(dtype)
        return Solved(total.to(dtype), weights._replace(chosen=probability))

    @classmethod
    def marginals(cls, saved: Tensors, mask: Bool[Tensor, "B n"] | None) -> tuple[Tensors, Tensors]:
        """Compute the arc marginals (B, n+1, n+1)."""
        weights = Weights(*saved)
        # There is a weight for every span: P = N (N - 1) / 2.
        num_nodes = (1 + math.isqrt(1 + 8 * weights.fresh.shape[1])) // 2
        spans = Spans.of(num_nodes, weights.fresh.device)
        arcs, nodes = outside(weights, spans, single_root=cls.single_root)
        found = arcs.square(spans)
        if mask is not None:
            found = torch.where(readable(found.shape[-1], mask, found.device), found, 0.0)
        return (found,), (*(part.view_as(part) for part in weights), nodes, found.clone())

    @classmethod
    def tangent(
        cls,
        saved: Tensors,
        mask: Bool[Tensor, "B n"] | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        """Compute the derivative of the arc marginals, in the layout of the marginals."""
        del wanted  # the only potential always needs its gradient
        *weights, nodes, arcs = saved
        (direction,) = directions
        assert direction is not None
        read = readable(arcs.shape[-1], mask, arcs.device)
        direction = torch.where(read, direction.to(arcs.dtype), 0.0)
        # Each word has one head in every tree: subtracting a constant from a column of the direction
        # changes nothing. The constant that makes its mean 0 keeps the numbers small.
        direction = direction - (arcs * direction).sum(-2, keepdim=True)
        size = arcs.shape[-1]
        spans = Spans.of(size - 1 if cls.single_root else size, arcs.device)
        both = Arcs.of(arcs, spans), Arcs.of(direction, spans)
        along = push(Weights(*weights), nodes, *both, spans).square(spans)
        return (along if mask is None else torch.where(read, along, 0.0),)


@final
class SingleRoot(ProjectivePasses):
    """Exactly one arc from the root."""

    single_root = True


@final
class MultiRoot(ProjectivePasses):
    """Any number of arcs from the root."""

    single_root = False

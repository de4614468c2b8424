"""Derivations of projective trees from filled charts: the best ones, and exact samples.

    step    take a complete span off the stack; choose its split, which has an arc as one part;
            choose the split under that arc; put the three complete spans that result on the stack

Each step adds one arc, so all trees of a batch take the same number of steps; a step is vectorized
over trees. The charts and their indices are the same as in the passes, with an additional last axis
of K ranks: each span holds its K best scores.

Axes: B batch, N nodes, K ranks, P pairs of ranks, Q trees (of all batch items together).
References: Eisner 1996, 2000; Huang & Chiang 2005 (the k best).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .._recursions import largest
from ._passes import Arcs, Spans, inside, whole

# Scores (Q, options) and ranks (Q) -> the chosen options (Q).
Choose = Callable[[Tensor, Tensor], Tensor]


class Ranks(NamedTuple):
    """Pairs of ranks: one rank of a left part and one of a right part."""

    left: Int[Tensor, " P"]
    right: Int[Tensor, " P"]


def rank_pairs(k: int, device: torch.device) -> Ranks:
    """Return the pairs of ranks that can give one of the k best sums of two sorted lists.

    At least (a + 1) (b + 1) pairs, including (a, b), are as good as (a, b). The product must
    therefore be at most k, which leaves about k log k pairs.
    """
    ranks = torch.arange(1, k + 1, device=device)
    left, right = (ranks.unsqueeze(-1) * ranks <= k).nonzero().unbind(-1)
    return Ranks(left, right)


class Charts(NamedTuple):
    """Inside scores, the charts of the passes with ranks."""

    starts: Float[Tensor, "N 3 N B K"]
    ends: Float[Tensor, "N 3 N B K"]
    root: Float[Tensor, "N B"] | None


def best_inside(arcs: Arcs, spans: Spans, k: int) -> Charts:
    """Compute the K = k best scores of every span."""
    num_nodes, batch = spans.num_nodes, arcs.pairs.shape[-1]
    charts = arcs.pairs.new_full((2, num_nodes, 3, num_nodes, batch, k), -torch.inf)
    starts, ends = charts.unbind(0)
    starts[0, 1:, ..., 0] = 0.0
    ends[-1, :2, ..., 0] = 0.0
    ranks = rank_pairs(k, charts.device)

    def best(left: Tensor, right: Tensor) -> Tensor:
        sums = left[..., ranks.left] + right[..., ranks.right]
        return largest(sums.movedim(0, -2).flatten(-2), k)[0]

    for width, scores in enumerate(spans.blocks(arcs.pairs), start=1):
        count = num_nodes - width
        left, right = starts[:width, :, :count], ends[count:, :, width:]
        incomplete = best(left[:, 1], right[:, 1]) + scores.view(2, count, batch, 1)
        starts[width - 1, 0, :count] = incomplete[0]
        ends[count, 2, width:] = incomplete[1]
        complete = best(left[:, ::2], right[:, ::2])
        starts[width, 1:, :count] = complete
        ends[count - 1, :2, width:] = complete
    return Charts(starts, ends, arcs.root)


class Split(NamedTuple):
    """Where spans are split (0 is the narrowest left part), and the ranks of both parts."""

    place: Int[Tensor, " Q"]
    left: Int[Tensor, " Q"]
    right: Int[Tensor, " Q"]


class Items(NamedTuple):
    """Spans of Q trees: the channel of the charts that split them, both ends, the rank."""

    channel: Int[Tensor, " Q"]
    start: Int[Tensor, " Q"]
    end: Int[Tensor, " Q"]
    rank: Int[Tensor, " Q"]


class Grower:
    """Grows Q trees at once, choosing among options by `choose`."""

    def __init__(self, charts: Charts, items: Int[Tensor, " Q"], choose: Choose) -> None:
        self.charts, self.items, self.choose = charts, items, choose
        self.num_nodes = len(charts.starts)
        num_trees, device = len(items), items.device
        self.ranks = rank_pairs(charts.starts.shape[-1], device)
        self.places = torch.arange(self.num_nodes, device=device).unsqueeze(-1)
        # Each span on the stack adds at least one more arc, so there are never more than N - 1.
        self.stack = torch.zeros(4, self.num_nodes + 1, num_trees, dtype=torch.long, device=device)
        self.height = torch.zeros(num_trees, dtype=torch.long, device=device)
        self.heads = torch.zeros(self.num_nodes, num_trees, dtype=torch.long, device=device)

    def push(self, spans: Items) -> None:
        """Put spans on the stack, one for each tree, except spans of a single node."""
        index = self.height.expand(4, 1, -1)
        self.stack.scatter_(1, index, torch.stack(spans).unsqueeze(1))
        self.height = self.height + (spans.start < spans.end)

    def pop(self) -> Items:
        self.height = self.height - 1
        return Items(*self.stack.gather(1, self.height.expand(4, 1, -1)).squeeze(1))

    def _take(self, scores: Float[Tensor, "N Q P"], rank: Tensor) -> Split:
        """Choose a split and a pair of ranks."""
        options = scores.transpose(0, 1).flatten(1)
        place, pair = self._divide(self.choose(options, rank), scores.shape[-1])
        return Split(place, self.ranks.left[pair], self.ranks.right[pair])

    @staticmethod
    def _divide(index: Tensor, size: int) -> tuple[Tensor, Tensor]:
        return index // size, index % size

    def split(self, spans: Items) -> Split:
        width = spans.end - spans.start
        across = (self.places + (self.num_nodes - width)).clamp(max=self.num_nodes - 1)
        left = self.charts.starts[:, spans.channel, spans.start, self.items]
        right = self.charts.ends[across, spans.channel, spans.end, self.items]
        sums = left[..., self.ranks.left] + right[..., self.ranks.right]
        possible = (self.places < width).unsqueeze(-1)
        found = self._take(torch.where(possible, sums, -torch.inf), spans.rank)
        # An impossible tree is grown as well; its splits only need to stay within its spans.
        return found._replace(place=torch.minimum(found.place, width - 1))

    def plant(self, rank: Int[Tensor, " Q"]) -> Int[Tensor, " Q"]:
        """Start every tree; return the word chosen by the root (0 if the root is a node)."""
        zero, last = torch.zeros_like(rank), torch.full_like(rank, self.num_nodes - 1)
        starts, ends, root = self.charts
        if root is None:
            self.push(Items(zero, zero, last, rank))
            return zero
        left, right = starts[:, 2, 0, self.items], ends[:, 0, -1, self.items]
        sums = left[..., self.ranks.left] + right[..., self.ranks.right]
        word, left_rank, right_rank = self._take(sums + root[:, self.items].unsqueeze(-1), rank)
        self.push(Items(zero + 2, zero, word, left_rank))
        self.push(Items(zero, word, last, right_rank))
        return word

    def step(self) -> None:
        """Add one arc to every tree."""
        span = self.pop()
        found = self.split(span)
        rightward = span.channel == 0
        word = span.start + found.place + rightward.long()
        self.heads.scatter_(
            0, word.unsqueeze(0), torch.where(rightward, span.start, span.end).unsqueeze(0)
        )
        self.push(
            Items(
                span.channel,
                torch.where(rightward, word, span.start),
                torch.where(rightward, span.end, word),
                torch.where(rightward, found.right, found.left),
            )
        )
        one = torch.ones_like(word)
        under = Items(
            one,
            torch.where(rightward, span.start, word),
            torch.where(rightward, word, span.end),
            torch.where(rightward, found.left, found.right),
        )
        inner = self.split(under)
        middle = under.start + inner.place
        self.push(Items(one - 1, under.start, middle, inner.left))
        self.push(Items(one + 1, middle + 1, under.end, inner.right))


def grow(
    charts: Charts, items: Int[Tensor, " Q"], rank: Int[Tensor, " Q"], choose: Choose
) -> Int[Tensor, "n Q"]:
    """Return the heads of the words of Q trees, given the batch item and the rank of each tree."""
    grower = Grower(charts, items, choose)
    chosen = grower.plant(rank)
    for _ in range(grower.num_nodes - 1):
        grower.step()
    if charts.root is None:
        return grower.heads[1:]
    return (grower.heads + 1).scatter(0, chosen.unsqueeze(0), 0)


class Ranked(NamedTuple):
    """The k best trees, best first; ranks that do not exist score -inf."""

    heads: Int[Tensor, "k B n"]
    scores: Float[Tensor, "k B"]


def best(arcs: Arcs, spans: Spans, k: int) -> Ranked:
    """Find the k trees of highest score in O(n^3 k log k) time."""
    charts = best_inside(arcs, spans, k)
    if arcs.root is None:
        scores = charts.starts[-1, 1, 0]
    else:
        ranks = rank_pairs(k, arcs.root.device)
        left, right = charts.starts[:, 2, 0], charts.ends[:, 0, -1]
        sums = left[..., ranks.left] + right[..., ranks.right] + arcs.root.unsqueeze(-1)
        scores = largest(sums.transpose(0, 1).flatten(1), k)[0]
    batch = len(scores)
    index = torch.arange(k * batch, device=scores.device)

    def choose(options: Tensor, rank: Tensor) -> Tensor:
        return largest(options, k)[1].gather(1, rank.unsqueeze(1)).squeeze(1)

    heads = grow(charts, index % batch, index // batch, choose)
    return Ranked(heads.T.reshape(k, batch, len(heads)), scores.T)


class Drawn(NamedTuple):
    """Exact samples of trees; `possible` is False for items without any tree."""

    heads: Int[Tensor, "S B n"]
    possible: Bool[Tensor, " B"]


def draw(arcs: Arcs, spans: Spans, num_samples: int, generator: torch.Generator | None) -> Drawn:
    """Draw independent exact samples: each split given the span above it."""
    chart = inside(arcs, spans, None)
    charts = Charts(chart.starts.unsqueeze(-1), chart.ends.unsqueeze(-1), arcs.root)
    possible = (whole(chart, arcs.root) > -torch.inf).any(0)
    batch = len(possible)
    items = torch.arange(num_samples * batch, device=possible.device) % max(batch, 1)

    def choose(options: Tensor, rank: Tensor) -> Tensor:
        del rank  # samples have no rank
        # The highest of log w - log e with e exponential is a draw from w (Gumbel-max).
        noise = torch.empty_like(options).exponential_(generator=generator)
        return (options - noise.log_()).argmax(-1)

    heads = grow(charts, items, torch.zeros_like(items), choose)
    return Drawn(heads.T.reshape(num_samples, batch, len(heads)), possible)

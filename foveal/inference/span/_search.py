"""The best bracketings, and exact samples.

Both unfold trees from the root down: take a span from a queue, choose its split, and add its two
parts to the queue. For the best trees, the choices come from tables written bottom up; for a
sample, they are drawn from p(split | span).

Axes: B batch, n words, L labels, N trees of a sentence, M = 2 n - 1 spans of a tree, k ranks,
H splits of all spans.
References: Huang & Chiang 2005 (k best); Goodman 1998 (samples).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from .._compaction import order, take
from .._recursions import largest
from ._passes import parts

# (starts, ends, ranks) of spans (N, B) -> the last word of their left parts, and the ranks of
# both parts. Results for single words are ignored.
Choose = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


class Trees(NamedTuple):
    """The spans of trees, the root first, over words moved as in `_compaction`; a tree over fewer than
    n words repeats its root.
    """

    starts: Int[Tensor, "M N B"]
    ends: Int[Tensor, "M N B"]
    ranks: Int[Tensor, "M N B"]


class Words(NamedTuple):
    """The words of each sentence."""

    order: Int[Tensor, "B n"]  # original index of each word, padding first
    lengths: Int[Tensor, " B"]  # real words


def find_words(spans: Float[Tensor, "B n n L"], mask: Bool[Tensor, "B n"] | None) -> Words:
    """Return the words of each sentence; without a mask, all words are real."""
    mask = spans.new_ones(spans.shape[:2], dtype=torch.bool) if mask is None else mask
    return Words(order(mask), mask.sum(-1))


def _move(square: Float[Tensor, "B n n L"], words: Words) -> Float[Tensor, "n n B L"]:
    """Convert to a chart with the real words at the end."""
    return take(take(square, words.order), words.order, axis=2).permute(1, 2, 0, 3)


def _unfold(lengths: Int[Tensor, " B"], num_words: int, num_trees: int, choose: Choose) -> Trees:
    """Unfold N trees whose roots have the ranks 0 .. N-1."""
    shape = (2 * num_words, num_trees, len(lengths))
    queues = [lengths.new_zeros(shape) for _ in Trees._fields]
    starts, ends, ranks = queues
    starts[0] = (num_words - lengths).clamp(max=num_words - 1)
    ends[0] = num_words - 1
    ranks[0] = torch.arange(num_trees, device=lengths.device).unsqueeze(-1)
    tail = lengths.new_ones(1, *shape[1:])
    nodes = []
    for node in range(2 * num_words - 1):
        alive = node < 2 * lengths - 1
        start, end, rank = (torch.where(alive, queue[node], queue[0]) for queue in queues)
        nodes.append(torch.stack([start, end, rank]))
        last, left, right = choose(start, end, rank)
        is_split = alive & (start < end)
        for child in ((start, last, left), (last + 1, end, right)):
            # The children of a single word go to a free slot, which is overwritten later.
            for queue, entry in zip(queues, child, strict=True):
                queue.scatter_(0, tail, entry.unsqueeze(0))
            tail = tail + is_split
    return Trees(*torch.stack(nodes, 1))


def _indicators(
    trees: Trees, labels: Int[Tensor, "M N B"], words: Words, num_labels: int
) -> Bool[Tensor, "N B n n L"]:
    """Return True on the spans of each tree, in the layout of the potentials."""
    num_words = words.order.shape[-1]
    place = words.order.expand(*trees.starts.shape, -1)
    starts, ends = (
        place.gather(-1, part.unsqueeze(-1)).squeeze(-1) for part in (trees.starts, trees.ends)
    )
    nodes = torch.arange(len(labels), device=labels.device)[:, None, None]
    labels = torch.where(nodes < 2 * words.lengths - 1, labels, labels[0])
    index = ((starts * num_words + ends) * num_labels + labels).permute(1, 2, 0)
    flat = index.new_zeros(*index.shape[:2], num_words**2 * num_labels, dtype=torch.bool)
    flat.scatter_(-1, index, words.lengths.unsqueeze(-1).expand_as(index) > 0)
    return flat.unflatten(-1, (num_words, num_words, num_labels))


def draw(
    weights: Float[Tensor, "H B"],
    labels: Float[Tensor, "B n n L"],
    words: Words,
    num_samples: int,
    generator: torch.Generator | None,
) -> Bool[Tensor, "N B n n L"]:
    """Draw exact samples, given p(split | span) and p(label | span). argmax( w / e ) with e exponential
    is a draw from weights w (a race of exponentials).
    """
    batch, num_words, _, num_labels = labels.shape
    device = weights.device
    widths = torch.arange(num_words, device=device)
    counts = widths * (num_words - widths)
    first_split = counts.cumsum(0) - counts
    weights = pad(weights, (0, 0, 0, 1))  # a last row for splits that do not exist
    columns = torch.arange(batch, device=device)

    def race(chances: Tensor) -> Tensor:
        noise = torch.empty_like(chances).exponential_(generator=generator)
        return (chances / noise).argmax(-1)

    def choose(start: Tensor, end: Tensor, rank: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        width = (end - start).unsqueeze(-1)
        rows = first_split[width] + widths * (num_words - width) + start.unsqueeze(-1)
        rows = torch.where(widths < width, rows, len(weights) - 1)
        return start + race(weights[rows, columns.unsqueeze(-1)]), rank, rank

    trees = _unfold(words.lengths, num_words, num_samples, choose)
    drawn = race(_move(labels, words)[trees.starts, trees.ends, columns])
    return _indicators(trees, drawn, words, num_labels)


class Ranked(NamedTuple):
    """The k best bracketings, best first; ranks that do not exist score -inf."""

    values: Bool[Tensor, "k B n n L"]
    scores: Float[Tensor, "k B"]


def best(spans: Float[Tensor, "B n n L"], words: Words, k: int) -> Ranked:
    """Find the k bracketings of highest score: each span holds k trees."""
    chart = _move(spans.double(), words)
    num_words, _, batch, num_labels = chart.shape
    # At least (a + 1) (b + 1) - 1 other sums are no worse than the sum of ranks a and b (from 0).
    pairs = [(a, b) for a in range(k) for b in range(k) if (a + 1) * (b + 1) <= k]
    first, second = torch.tensor(pairs, device=chart.device).T
    label_scores, labels = largest(pad(chart, (0, max(0, k - num_labels)), value=-torch.inf), k)
    # The labels that pad the list are never part of a possible tree.
    labels = labels.clamp(max=num_labels - 1)
    scores = label_scores.clone()  # (n, n, B, k)
    pointers = torch.zeros_like(labels)
    for width in range(1, num_words):
        diagonal = torch.arange(num_words - width, device=chart.device)
        here = (diagonal, diagonal + width)
        left, right = (part.unflatten(-1, (batch, k)) for part in parts(scores.flatten(2), width))
        joined = left[..., first] + right[..., second]  # (splits, spans, B, pairs)
        ranked, split = largest(joined.movedim(0, -2).flatten(-2), k)
        ranked, pair = largest(ranked[..., first] + label_scores[here][..., second], k)
        scores[here] = ranked
        pointers[here] = split.gather(-1, first[pair])
        labels[here] = labels[here].gather(-1, second[pair])

    columns = torch.arange(batch, device=chart.device)

    def choose(start: Tensor, end: Tensor, rank: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        pointer = pointers[start, end, columns, rank]
        pair = pointer % len(first)
        return start + pointer // len(first), first[pair], second[pair]

    trees = _unfold(words.lengths, num_words, k, choose)
    chosen = labels[trees.starts, trees.ends, columns, trees.ranks]
    total = scores[trees.starts[0], trees.ends[0], columns, trees.ranks[0]]
    is_only = torch.arange(k, device=chart.device).unsqueeze(-1) == 0
    empty = torch.where(is_only, 0.0, -torch.inf).to(total.dtype)
    total = torch.where(words.lengths == 0, empty, total)
    return Ranked(_indicators(trees, chosen, words, num_labels), total)

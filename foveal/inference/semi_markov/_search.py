"""The best segmentations of a semi-Markov model, and exact samples.

Both trace segmentations back from the last position: a segment that ends at t has a length, and a
segment that starts at t has a predecessor. For the best segmentations, both come from tables of
pointers written by the inside pass; for a sample, both are drawn from the conditionals.

Axes: T positions and N = T - 1 steps, D lengths, B batch, K labels, S samples, k ranks.
References: Sarawagi & Cohen 2004.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._recursions import largest
from ._passes import SemiMarkov, by_end

# Maps entries (B, N) at a position to their predecessors.
Choose = Callable[[int, Int[Tensor, "B N"]], Int[Tensor, "B N"]]


def _trace(
    length: int, last: Int[Tensor, "B N"], k: int, choose_length: Choose, choose_previous: Choose
) -> Int[Tensor, "T B N"]:
    """Trace segmentations back; return labels at the starts of segments and -1 elsewhere. An entry is
    label * k + rank; a chosen length is d * k + rank, with the rank at the start of the segment.
    """
    entry = last
    left = torch.zeros_like(last)  # remaining positions of the current segment
    labels = []
    for t in range(length - 1, -1, -1):
        ending, chosen = left == 0, choose_length(t, entry)
        entry = torch.where(ending, entry - entry % k + chosen % k, entry)
        left = torch.where(ending, chosen // k, left - 1)
        starting = left == 0
        labels.append(torch.where(starting, entry // k, -1))
        if t > 0:
            entry = torch.where(starting, choose_previous(t, entry), entry)
    return torch.stack(labels[::-1])


class Ranked(NamedTuple):
    """The k best segmentations, best first; ranks that do not exist score -inf."""

    labels: Int[Tensor, "T B k"]
    scores: Float[Tensor, "B k"]


def best(model: SemiMarkov, k: int) -> Ranked:
    """Find the k segmentations of highest score: each start and each end holds k prefixes."""
    segments, transitions, begins, empty = model
    length, num_lengths, _, _ = segments.shape
    ending = by_end(segments, -torch.inf)
    ranks = torch.arange(k, device=segments.device)
    nothing = torch.where(ranks == 0, 0.0, -torch.inf).double()  # the empty prefix, once
    start = nothing.expand(*segments.shape[2:], k)
    if begins is not None:
        start = torch.where(begins[0].unsqueeze(-1), start, -torch.inf)
    window = torch.full_like(start, -torch.inf).expand(num_lengths, -1, -1, -1)
    to_length: list[Tensor] = []
    to_previous: list[Tensor] = []
    end = start
    for t in range(length):
        if t > 0:
            edges = transitions[t - 1].transpose(-1, -2).unsqueeze(-1)
            start, pointer = largest((end.unsqueeze(1) + edges).flatten(2), k)
            to_previous.append(pointer.flatten(1))
            if begins is not None:
                start = torch.where(begins[t].unsqueeze(-1), nothing, start)
        window = torch.cat([start.unsqueeze(0), window[:-1]])
        joined = (window + ending[t].unsqueeze(-1)).permute(1, 2, 0, 3)
        end, pointer = largest(joined.flatten(2), k)
        to_length.append(pointer.flatten(1))
    scores, last = largest(end.flatten(1), k)
    if empty is not None:
        scores = torch.where(empty.unsqueeze(-1), nothing, scores)
    return Ranked(_trace(length, last, k, *map(_follow, (to_length, to_previous), (0, 1))), scores)


def _follow(pointers: Sequence[Tensor], first: int) -> Choose:
    """Return a function that looks entries up in stored pointers; `first` is the position of the first."""
    return lambda t, entry: pointers[t - first].gather(-1, entry)


def draw(
    lengths: Float[Tensor, "T D B K"],
    previous: Float[Tensor, "N B K K"],
    last: Float[Tensor, "B K"],
    num_samples: int,
    generator: torch.Generator | None,
) -> Int[Tensor, "T B S"]:
    """Draw exact samples from the end: the last label, then each length and each previous label."""
    ending = by_end(lengths, 0.0).permute(0, 2, 3, 1)  # (T, B, K, D)
    before = previous.transpose(-1, -2)  # (N, B, K, i)

    def race(weights: Float[Tensor, "B S n"]) -> Int[Tensor, "B S"]:
        # argmax(w / e) with e exponential is a draw from w (a race of exponentials).
        noise = torch.empty_like(weights, memory_format=torch.contiguous_format)
        return (weights / noise.exponential_(generator=generator)).argmax(-1)

    def at(table: Float[Tensor, "B K n"], entry: Int[Tensor, "B S"]) -> Float[Tensor, "B S n"]:
        return table.gather(1, entry.unsqueeze(-1).expand(-1, -1, table.shape[-1]))

    return _trace(
        len(lengths),
        race(last.unsqueeze(1).expand(-1, num_samples, -1)),
        1,
        lambda t, entry: race(at(ending[t], entry)),
        lambda t, entry: race(at(before[t - 1], entry)),
    )

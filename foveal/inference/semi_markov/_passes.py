"""The passes of the semi-Markov model, in PyTorch operations: the reference on any device.

    starts        s[t, k] = log sum_i exp( a[t-1, i] + transitions[t, i, k] ),   s[0] = 0
    inside        a[t, k] = log sum_d exp( s[t-d, k] + segments[t-d, d, k] )
    conditionals  l[t, d, k] = exp( s[t, k] + segments[t, d, k] - a[t+d, k] )  =  p( length d+1 | a segment of k ends at t+d )
                  q[t, i, k] = exp( a[t-1, i] + transitions[t, i, k] - s[t, k] )  =  p( i before | a segment of k starts at t )
    outside       m[t, d, k] = l[t, d, k] end[t+d, k],   start[t, k] = sum_d m[t, d, k],   end[t-1, i] = sum_k q[t, i, k] start[t, k]
    tangent       linear recursions over the same l and q

The log-space recursion is in float64; the conditionals and all later values have the dtype of
the result. Real positions are moved to the end of the row. Every row then ends at T - 1, and the
mask only determines where a row starts. Padding is never read.

Axes: T positions and N = T - 1 steps between them (leading), D lengths, B batch, K labels.
All arrays of segments are (T, D, B, K), by the start of the segment.
References: Sarawagi & Cohen 2004 (semi-Markov CRF); Mensch & Blondel 2018 (tangents).
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...masking import linked_steps
from .._compaction import order, places, take
from .._derivatives import Solved, Tensors
from .._precision import result_dtype, without_autocast
from .._recursions import keep, softmax_or_zero


class SemiMarkov(NamedTuple):
    """Prepared log-potentials: positions first, real positions at the end, and unread entries forbidden."""

    segments: Float[Tensor, "T D B K"]  # float64
    transitions: Float[Tensor, "N #B K K"]  # float64
    begins: Bool[Tensor, "T B 1"] | None  # True on the first position of a row; None: position 0
    empty: Bool[Tensor, " B"] | None  # rows without a real position


def prepare(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
) -> SemiMarkov:
    """Put the positions first, real positions last, and forbid segments that cross either end."""
    length = segments.shape[1]
    if mask is not None:
        placed = order(mask)
        segments = take(segments, placed)
        if transitions.shape[1] == length - 1:
            entry = (placed[:, 1:] - 1).clamp(min=0)
            transitions = take(transitions.expand(len(mask), -1, -1, -1), entry)
    segments = segments.permute(1, 2, 0, 3).to(torch.float64)
    transitions = transitions.transpose(0, 1).expand(length - 1, -1, -1, -1).to(torch.float64)
    allowed = _inside_row(segments)
    begins = empty = None
    if mask is not None:
        position = torch.arange(length, device=mask.device).unsqueeze(-1)
        first = length - mask.sum(-1)
        begins, empty = (position == first).unsqueeze(-1), first == length
        allowed = allowed & (position >= first)[:, None, :, None]
        transitions = torch.where((position > first)[1:, :, None, None], transitions, -torch.inf)
    return SemiMarkov(torch.where(allowed, segments, -torch.inf), transitions, begins, empty)


def _inside_row(segments: Float[Tensor, "T D B K"]) -> Bool[Tensor, "T D 1 1"]:
    """Return True on segments that end by the last position."""
    length, num_lengths = segments.shape[:2]
    position = torch.arange(length, device=segments.device).unsqueeze(-1)
    end = position + torch.arange(num_lengths, device=segments.device)
    return (end < length)[..., None, None]


def _restore_segments(part: Float[Tensor, "T D B K"], mask: Tensor | None) -> Tensor:
    """Convert back to (B, T, D, K) in the order of the input, with 0 on padding."""
    part = part.permute(2, 0, 1, 3)
    return part if mask is None else keep(take(part, places(mask)), mask)


def _restore_steps(part: Float[Tensor, "N B K K"], mask: Tensor | None) -> Tensor:
    """Convert back to (B, N, K, K) in the order of the input, with 0 on steps next to padding."""
    part = part.transpose(0, 1)
    if mask is None:
        return part
    entry = (places(mask)[:, 1:] - 1).clamp(min=0)
    return keep(take(part, entry), linked_steps(mask))


def restore_labels(
    labels: Int[Tensor, "T B N"], mask: Bool[Tensor, "B T"] | None
) -> Int[Tensor, "N B T"]:
    """Return the labels in the order of the input, with -1 on padding."""
    labels = labels.permute(2, 1, 0)
    if mask is None:
        return labels
    index = places(mask).expand(len(labels), -1, -1)
    return torch.where(mask, labels.gather(-1, index), -1)


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z: O(T K (K + D)) work, O(T K) state."""
    segments, transitions = potentials
    model = prepare(segments, transitions, mask)
    return _total(model, inside(model)[1][-1]).to(result_dtype(segments, transitions))


def solve(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> Solved:
    """Compute log Z, both conditionals, and the label probabilities of the last segment (B, K)."""
    segments, transitions = potentials
    dtype = result_dtype(segments, transitions)
    model = prepare(segments, transitions, mask)
    starts, ends = inside(model)
    lengths, previous = conditionals(model, starts, ends, dtype)
    last = softmax_or_zero(ends[-1], dtype)
    return Solved(_total(model, ends[-1]).to(dtype), (lengths, previous, last))


def _total(model: SemiMarkov, last: Float[Tensor, "B K"]) -> Float[Tensor, " B"]:
    total = torch.logsumexp(last, -1)
    # A row with no real position has one segmentation, the empty one.
    return total if model.empty is None else torch.where(model.empty, 0.0, total)


def inside(model: SemiMarkov) -> tuple[Float[Tensor, "T B K"], Float[Tensor, "T B K"]]:
    """Compute the log-sums over prefixes before a segment that starts at t, and that end at t."""
    segments, transitions, begins, _ = model
    start = torch.zeros_like(segments[0, 0])
    if begins is not None:
        start = torch.where(begins[0], start, -torch.inf)
    never = torch.full_like(segments[0, :1], -torch.inf)
    pending = torch.full_like(segments[0], -torch.inf)  # at d: prefixes that end with t + d
    starts, ends = [], []
    for t, segment in enumerate(segments.unbind(0)):
        if t > 0:
            start = _log_sum(ends[-1].unsqueeze(-1) + transitions[t - 1])
            if begins is not None:
                start = torch.where(begins[t], 0.0, start)
        pending = torch.logaddexp(pending, segment + start)
        starts.append(start)
        ends.append(pending[0])
        pending = torch.cat([pending[1:], never])
    return torch.stack(starts), torch.stack(ends)


def _log_sum(joined: Float[Tensor, "B i K"]) -> Float[Tensor, "B K"]:
    """Sum over the previous label; with two labels, one fused operation does the work of six."""
    if joined.shape[-2] == 2:
        return torch.logaddexp(*joined.unbind(-2))
    return torch.logsumexp(joined, -2)


def conditionals(
    model: SemiMarkov,
    starts: Float[Tensor, "T B K"],
    ends: Float[Tensor, "T B K"],
    dtype: torch.dtype,
) -> tuple[Float[Tensor, "T D B K"], Float[Tensor, "N B K K"]]:
    """Compute l[t, d, k] and q[t, i, k], 0 for an unreachable end or start."""
    # An unreachable entry is normalized by +inf, which gives weight exp(-inf) = 0; subtracting
    # its inside score of -inf would give NaN.
    to_end = torch.where(ends == -torch.inf, torch.inf, ends)
    to_start = torch.where(starts == -torch.inf, torch.inf, starts)
    lengths = model.segments + starts.unsqueeze(1)
    lengths = lengths - _at_ends(to_end, lengths.shape[1], torch.inf)
    previous = ends[:-1].unsqueeze(-1) + model.transitions - to_start[1:].unsqueeze(-2)
    return lengths.to(dtype).exp(), previous.to(dtype).exp()


def _at_ends(ends: Float[Tensor, "T ..."], num_lengths: int, beyond: float) -> Tensor:
    """Return ends[t + d] as a view (T, D, ...), with `beyond` past the last position."""
    extra = torch.full_like(ends[:1], beyond).expand(num_lengths - 1, *ends.shape[1:])
    return torch.cat([ends, extra]).unfold(0, num_lengths, 1).movedim(-1, 1)


def marginals(saved: Tensors, mask: Bool[Tensor, "B T"] | None) -> tuple[Tensors, Tensors]:
    """Compute the segment marginals (B, T, D, K) and the pair marginals (B, N, K, K)."""
    lengths, previous, last = saved
    with without_autocast(last):
        starts, ends = outside(lengths, previous, last)
    segments = lengths * _at_ends(ends, lengths.shape[1], 0.0)
    pairs = previous * starts[1:].unsqueeze(-2)
    found = (_restore_segments(segments, mask), _restore_steps(pairs, mask))
    return found, (lengths.view_as(lengths), previous.view_as(previous), starts, ends)


def outside(
    lengths: Float[Tensor, "T D B K"],
    previous: Float[Tensor, "N B K K"],
    last: Float[Tensor, "B K"],
) -> tuple[Float[Tensor, "T B K"], Float[Tensor, "T B K"]]:
    """Compute p(a segment of k starts at t) and p(a segment of k ends at t), from the end back."""
    end = last
    window = torch.zeros_like(lengths[0])  # at d: ends with t + d
    starts, ends = [], []
    for t in range(len(lengths) - 1, -1, -1):
        ends.append(end)
        window = torch.cat([end.unsqueeze(0), window[:-1]])
        starts.append((lengths[t] * window).sum(0))
        if t > 0:
            end = torch.bmm(previous[t - 1], starts[-1].unsqueeze(-1)).squeeze(-1)
    # Segments cover every position once, so the total is 1. The rounding error grows with every
    # step: normalize. If no segmentation is possible, the total is 0 and stays 0.
    found = torch.stack(ends[::-1])
    total = _cover(lengths * _at_ends(found, len(window), 0.0)).to(found.dtype)
    found = found / torch.where(total > 0, total, 1.0).unsqueeze(-1)
    return (lengths * _at_ends(found, len(window), 0.0)).sum(1), found


def _cover(segments: Float[Tensor, "T D B K"]) -> Float[Tensor, "T B"]:
    """Sum over all segments that cover each position."""
    longer = segments.sum(-1, dtype=torch.float64).flip(1).cumsum(1).flip(1)
    return by_end(longer, 0.0).sum(1)  # that started d before and are longer than d


def by_end(part: Float[Tensor, "T D *rest"], before: float) -> Float[Tensor, "T D *rest"]:
    """Move part[t - d, d] to [t, d]: index the same segments by their last position."""
    length, num_lengths = part.shape[:2]
    lengths = torch.arange(num_lengths, device=part.device)
    start = torch.arange(length, device=part.device).unsqueeze(-1) - lengths
    found = part.flatten(0, 1)[start.clamp(min=0) * num_lengths + lengths]
    return torch.where((start >= 0).reshape(start.shape + (1,) * (part.ndim - 2)), found, before)


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B T"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivatives of both marginals along a direction g in the potentials.

    With G(y) the sum of g over the parts of y, the derivative is Cov(part, G). `_center` makes
    E[G] = 0; the covariance then follows from the expected G on either side:

        past_start[t, k] = E[ G before | a segment of k starts at t ]  = sum_i q[t, i, k] (g[t, i, k] + past_end[t-1, i])
        past_end[t, k]   = E[ G so far | a segment of k ends with t ]  = sum_d l[t-d, d, k] (g[t-d, d, k] + past_start[t-d, k])
        from_start[t, k] = E[ G from t on; a segment of k starts ]     = sum_d (m[t, d, k] g[t, d, k] + l[t, d, k] from_end[t+d, k])
        from_end[t-1, i] = E[ G after; a segment of i ends with t-1 ]  = sum_k q[t, i, k] (start[t, k] g[t, i, k] + from_start[t, k])
    """
    lengths, previous, starts, ends = saved
    length, num_lengths = lengths.shape[:2]
    segments = lengths * _at_ends(ends, num_lengths, 0.0)
    pairs = previous * starts[1:].unsqueeze(-2)
    on_segments, on_pairs = _directions(directions, mask, lengths, previous)
    on_segments = _center(on_segments, segments, on_pairs, pairs)

    weighted, joint = segments * on_segments, pairs * on_pairs
    with without_autocast(lengths):
        past_start, past_end = _past(lengths, previous, on_segments, on_pairs)
        from_start, from_end = _future(lengths, previous, weighted.sum(1), joint.sum(-1))

    after = lengths * _at_ends(from_end, num_lengths, 0.0)
    along_segments = torch.addcmul(weighted + after, segments, past_start.unsqueeze(1))
    # The total over a position is constant, so its derivative is 0. Removing the rounding error
    # keeps it from growing with T.
    rest = _cover(along_segments).to(segments.dtype)[..., None]
    along_segments = along_segments - segments * rest.unsqueeze(1)
    if not wanted[1]:
        return _restore_segments(along_segments, mask), None
    before = torch.addcmul(joint, pairs, past_end[: length - 1].unsqueeze(-1))
    along_pairs = torch.addcmul(before, previous, from_start[1:].unsqueeze(-2))
    along_pairs = along_pairs - pairs * rest[1:].unsqueeze(-1)
    return _restore_segments(along_segments, mask), _restore_steps(along_pairs, mask)


def _directions(
    directions: tuple[Tensor | None, ...],
    mask: Tensor | None,
    lengths: Float[Tensor, "T D B K"],
    previous: Float[Tensor, "N B K K"],
) -> tuple[Float[Tensor, "T D B K"], Float[Tensor, "N B K K"]]:
    """Convert gradients (B, T, ...) to the layout and the order of the recursions."""
    on_segments, on_pairs = directions
    placed = None if mask is None else order(mask)
    if on_segments is None:
        on_segments = torch.zeros_like(lengths)
    else:
        on_segments = on_segments if placed is None else take(on_segments, placed)
        on_segments = on_segments.permute(1, 2, 0, 3).to(lengths.dtype)
        # Set the direction to 0 on entries that no segmentation reads; a gradient may be nonzero there.
        on_segments = torch.where(lengths > 0, on_segments, 0.0)
    if on_pairs is None:
        on_pairs = torch.zeros_like(previous)
    else:
        if placed is not None:
            on_pairs = take(on_pairs, (placed[:, 1:] - 1).clamp(min=0))
        on_pairs = on_pairs.transpose(0, 1).to(previous.dtype)
        on_pairs = torch.where(previous > 0, on_pairs, 0.0)
    return on_segments, on_pairs


def _center(
    on_segments: Float[Tensor, "T D B K"],
    segments: Float[Tensor, "T D B K"],
    on_pairs: Float[Tensor, "N B K K"],
    pairs: Float[Tensor, "N B K K"],
) -> Float[Tensor, "T D B K"]:
    """Subtract from each segment the mean of G over the positions that it covers.

    Every segmentation covers every position once, so each loses the same amount, E[G]. The
    remaining sums stay near 0 for rows of any length, as float32 requires.
    """
    gained = (segments * on_segments).sum((1, 3), dtype=torch.float64)
    on_steps = (pairs * on_pairs).sum((2, 3), dtype=torch.float64)
    gained = torch.cat([gained[:1], gained[1:] + on_steps])
    totals = gained.cumsum(0)
    covered = _at_ends(totals, segments.shape[1], 0.0) - (totals - gained).unsqueeze(1)
    return on_segments - covered.to(on_segments.dtype).unsqueeze(-1)


def _past(
    lengths: Float[Tensor, "T D B K"],
    previous: Float[Tensor, "N B K K"],
    on_segments: Float[Tensor, "T D B K"],
    on_pairs: Float[Tensor, "N B K K"],
) -> tuple[Float[Tensor, "T B K"], Float[Tensor, "T B K"]]:
    own, entered = lengths * on_segments, (previous * on_pairs).sum(-2)
    start = torch.zeros_like(own[0, 0])
    none_yet = torch.zeros_like(own[0, :1])
    pending = torch.zeros_like(own[0])
    starts, ends = [], []
    for t in range(len(lengths)):
        if t > 0:
            back = previous[t - 1].transpose(-1, -2)
            start = torch.baddbmm(entered[t - 1].unsqueeze(-1), back, ends[-1].unsqueeze(-1))
            start = start.squeeze(-1)
        pending = torch.addcmul(pending + own[t], lengths[t], start)
        starts.append(start)
        ends.append(pending[0])
        pending = torch.cat([pending[1:], none_yet])
    return torch.stack(starts), torch.stack(ends)


def _future(
    lengths: Float[Tensor, "T D B K"],
    previous: Float[Tensor, "N B K K"],
    own: Float[Tensor, "T B K"],
    left: Float[Tensor, "N B K"],
) -> tuple[Float[Tensor, "T B K"], Float[Tensor, "T B K"]]:
    end = torch.zeros_like(own[0])
    window = torch.zeros_like(lengths[0])
    starts, ends = [], []
    for t in range(len(lengths) - 1, -1, -1):
        ends.append(end)
        window = torch.cat([end.unsqueeze(0), window[:-1]])
        starts.append(own[t] + (lengths[t] * window).sum(0))
        if t > 0:
            start = starts[-1].unsqueeze(-1)
            end = torch.baddbmm(left[t - 1].unsqueeze(-1), previous[t - 1], start).squeeze(-1)
    return torch.stack(starts[::-1]), torch.stack(ends[::-1])

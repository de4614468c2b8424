"""The ops of semi-Markov models; each has the arguments of the op of `foveal_native` of the same name.

Masked positions are moved to the end of each row before the kernels, and moved back after them.

Axes: B batch, T positions, D lengths, K labels, S samples.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import (
    _segment_kernels as kernels,
    _segment_search as search,
    _segment_sweeps as sweeps,
    _segment_tangents as tangents,
)
from ._launching import has_fast_log, launch, op, power_of_two, stages_ahead, tile_size


class Rows(NamedTuple):
    """The real positions of a batch."""

    order: Tensor  # (B, T) the original position of each row, real positions first
    inverse: Tensor  # (B, T) the row of each original position
    linked: Tensor  # (B, T-1) True on steps into a real position after another one
    counts: Tensor  # (B,) the number of real positions

    @classmethod
    def of(cls, mask: Tensor | None) -> "Rows | None":
        """Sort the positions of a mask (B, T)."""
        if mask is None:
            return None
        order = mask.logical_not().to(torch.int32).argsort(dim=-1, stable=True)
        counted = mask.cumsum(-1, dtype=torch.int32)
        steps = mask.shape[1] - 1
        linked = mask.narrow(1, 1, steps) & (counted.narrow(1, 1, steps) > 1)
        return cls(order, order.argsort(dim=-1), linked, mask.sum(-1, dtype=torch.int32))


def _take(part: Tensor, index: Tensor) -> Tensor:
    """Select entries along the second axis with an index for each item."""
    index = index.reshape(*index.shape, *(1,) * (part.ndim - 2))
    return part.gather(1, index.expand(*index.shape[:2], *part.shape[2:]))


def _before(index: Tensor) -> Tensor:
    """Return the index (B, T-1) of the steps into all positions after the first."""
    return (index.narrow(1, 1, index.shape[1] - 1) - 1).clamp(min=0)


def _sorted(part: Tensor, rows: Rows | None) -> Tensor:
    """Put the real positions first."""
    return part.contiguous() if rows is None else _take(part, rows.order)


def _sorted_steps(part: Tensor, rows: Rows | None) -> Tensor:
    """Put the steps into real positions first, if there is one table for each step."""
    if rows is None or part.shape[1] != rows.order.shape[1] - 1:
        return part.contiguous()
    part = part.expand(len(rows.order), *part.shape[1:])
    return _take(part, _before(rows.order))


def _restored(part: Tensor, rows: Rows | None) -> Tensor:
    """Put the positions back in their order."""
    return part if rows is None else _take(part, rows.inverse)


def _restored_steps(part: Tensor, rows: Rows | None) -> Tensor:
    """Put the steps back in their order, with 0 on those that join nothing."""
    if rows is None:
        return part
    found = _take(part, _before(rows.inverse))
    return torch.where(rows.linked.reshape(*rows.linked.shape, 1, 1), found, 0.0)


class Layout(NamedTuple):
    """The tile sizes for K labels and D lengths."""

    labels: int
    lengths: int
    block: int  # items of a program
    stages: int  # steps that loads run ahead
    warps: int

    @classmethod
    def of(cls, segments: Tensor) -> "Layout":
        """Choose tile sizes, for scores (B, T, D, K): many items in a program if K and D are small, many warps
        if they are large.
        """
        lengths, labels = segments.shape[2:]
        padded = power_of_two(labels)
        tile = padded * max(padded, power_of_two(lengths))
        block = max(1, tile_size() // tile)
        warps = 1 if tile <= 256 else 4 if tile <= 1024 else 16
        size = block * tile * segments.element_size()
        # Loads that run ahead need registers, and their masks too many scalar registers on AMD.
        most = 1 if size > 16 << 10 else 2 if size > 8 << 10 or torch.version.hip is not None else 4
        stages = min(stages_ahead(segments), most)
        return cls(labels, lengths, block, stages, warps)

    def flat(self, rows: int) -> tuple[tuple[int], dict[str, int]]:
        """Return the grid and the constants of a kernel that computes all positions at once."""
        sizes = {
            "LABELS": self.labels,
            "PADDED": power_of_two(self.labels),
            "LENGTHS": self.lengths,
            "SLOTS": power_of_two(self.lengths),
            "BLOCK": self.block,
            "num_warps": self.warps,
        }
        return (-(-rows // self.block),), sizes

    def sequential(self, rows: int) -> tuple[tuple[int], dict[str, int]]:
        """Return the grid and the constants of a kernel that runs through the positions."""
        grid, sizes = self.flat(rows)
        return grid, sizes | {"STAGES": self.stages}


class Model(NamedTuple):
    """Potentials with the real positions first."""

    segments: Tensor
    transitions: Tensor
    rows: Rows | None
    sizes: Layout

    @classmethod
    def of(cls, segments: Tensor, transitions: Tensor, mask: Tensor | None) -> "Model":
        """Sort the positions."""
        rows = Rows.of(mask)
        sizes = Layout.of(segments)
        return cls(_sorted(segments, rows), _sorted_steps(transitions, rows), rows, sizes)

    @property
    def counts(self) -> Tensor:
        """The numbers of real positions, or a tensor that no kernel reads."""
        return self.segments if self.rows is None else self.rows.counts

    def strides(self) -> tuple[int, int]:
        """Return the strides of items and of steps, 0 where the transitions are shared."""
        labels, (items, steps) = self.sizes.labels, self.transitions.shape[:2]
        return steps * labels**2 * (items > 1), labels**2 * (steps > 1)


class Inside(NamedTuple):
    """Results of the inside pass; the last three are empty unless kept."""

    log_partition: Tensor  # (B,)
    lengths: Tensor  # (B, T, D, K)
    previous: Tensor  # (B, T-1, K, K)
    last: Tensor  # (B, K)


def inside(model: Model, *, keep: bool) -> Inside:
    """Run the inside pass.

    Args:
        model: The potentials.
        keep: Whether to write conditionals.
    """
    segments = model.segments
    batch, length, _, labels = segments.shape
    found = Inside(
        segments.new_empty(batch),
        segments.new_empty(segments.shape if keep else 0),
        segments.new_empty((batch, length - 1, labels, labels) if keep else 0),
        segments.new_empty((batch, labels) if keep else 0),
    )
    grid, constants = model.sizes.sequential(batch)
    launch(
        kernels.inside, grid, segments, model.transitions, model.counts, *found, batch, length,
        *model.strides(), MASKED=model.rows is not None, SHARED=model.transitions.shape[1] == 1, KEEP=keep,
        FAST=has_fast_log(segments), **constants,
    )  # fmt: skip
    return found


@op("semi_markov_log_partition")
def semi_markov_log_partition(segments: Tensor, transitions: Tensor, mask: Tensor | None) -> Tensor:
    """Compute log Z (B,)."""
    return inside(Model.of(segments, transitions, mask), keep=False).log_partition


@op("semi_markov_marginals")
def semi_markov_marginals(
    segments: Tensor, transitions: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute log Z (B,), segment marginals (B, T, D, K) and pair marginals (B, T-1, K, K)."""
    model = Model.of(segments, transitions, mask)
    log_partition, lengths, previous, last = inside(model, keep=True)
    batch, length, num_lengths, labels = segments.shape
    starts, ends = (last.new_empty(batch, length, labels) for _ in range(2))
    covers = last.new_empty(batch, length, num_lengths)
    sizes, masked = model.sizes, mask is not None
    grid, constants = sizes.sequential(batch)
    launch(
        sweeps.sweep, grid, lengths, previous, model.counts, last, last, last, starts, ends, batch, length,
        MASKED=masked, BACK=True, SCALED=False, **constants,
    )  # fmt: skip
    rows = batch * length
    grid, constants = sizes.flat(rows)
    launch(
        sweeps.weigh, grid, lengths, model.counts, ends, covers, rows, length, MASKED=masked,
        **constants,
    )  # fmt: skip
    masses, pairs = torch.zeros_like(lengths), torch.zeros_like(previous)
    launch(
        sweeps.join, grid, lengths, model.counts, ends, covers, masses, rows, length, MASKED=masked,
        **constants,
    )  # fmt: skip
    launch(
        sweeps.join_pairs, grid, previous, model.counts, starts, covers, pairs, rows, length, MASKED=masked,
        **constants,
    )  # fmt: skip
    return log_partition, _restored(masses, model.rows), _restored_steps(pairs, model.rows)


def _sweep(
    sizes: Layout, segments: Tensor, pairs: Tensor, scales: Tensor, terms: Tensor, *, back: bool
) -> tuple[Tensor, Tensor]:
    """Run a sweep of the tangent; return the numbers of starts and of ends (B, T, K)."""
    batch, length, _, labels = segments.shape
    starts, ends = (segments.new_empty(batch, length, labels) for _ in range(2))
    grid, constants = sizes.sequential(batch)
    launch(
        sweeps.sweep, grid, segments, pairs, segments, segments, scales, terms, starts, ends, batch, length,
        MASKED=False, BACK=back, SCALED=True, **constants,
    )  # fmt: skip
    return starts, ends


@op("semi_markov_tangent")
def semi_markov_tangent(
    segments: Tensor,
    pairs: Tensor,
    mask: Tensor | None,
    on_segments: Tensor | None,
    on_pairs: Tensor | None,
    want_pairs: bool,
) -> tuple[Tensor, Tensor]:
    """Compute the derivatives of both marginals along a direction; the second is empty unless wanted."""
    order, sizes = Rows.of(mask), Layout.of(segments)
    segments, pairs = _sorted(segments, order), _sorted_steps(pairs, order)
    along = segments if on_segments is None else _sorted(on_segments, order)
    across = pairs if on_pairs is None else _sorted_steps(on_pairs, order)
    has: dict[str, Any] = {"SEGMENTS": on_segments is not None}
    both = has | {"PAIRS": on_pairs is not None}
    batch, length, num_lengths, labels = segments.shape
    rows = batch * length
    grid, flat = sizes.flat(rows)
    gains = segments.new_empty(batch, length)
    launch(
        tangents.measure, grid, segments, pairs, along, across, gains, rows, length, **both, **flat
    )
    totals = gains.cumsum(-1, dtype=torch.float64)
    scales, past, future = (segments.new_empty(2, batch, length, labels) for _ in range(3))
    launch(
        tangents.prepare, grid, segments, pairs, along, across, totals, scales, past, future, rows, length,
        **both, **flat,
    )  # fmt: skip
    past_starts, past_ends = _sweep(sizes, segments, pairs, scales, past, back=False)
    future_starts, future_ends = _sweep(sizes, segments, pairs, scales, future, back=True)
    covers = segments.new_empty(batch, length, num_lengths)
    launch(
        tangents.weigh_changes, grid, segments, along, totals, past_starts, future_ends, covers, rows, length,
        **has, **flat,
    )  # fmt: skip
    changes = torch.empty_like(segments)
    pair_changes = torch.empty_like(pairs) if want_pairs else pairs.new_empty(0)
    launch(
        tangents.join_changes, grid, segments, pairs, along, across, totals, past_starts, past_ends,
        future_starts, future_ends, covers, changes, pair_changes, rows, length, WANT_PAIRS=want_pairs,
        **both, **flat,
    )  # fmt: skip
    if want_pairs:
        pair_changes = _restored_steps(pair_changes, order)
    return _restored(changes, order), pair_changes


def _trace(
    model: Model, lengths: Tensor, previous: Tensor, last: Tensor, uniforms: Tensor | None, samples: int
) -> Tensor:  # fmt: skip
    """Trace segmentations (S, B, T) back, from pointers or from conditionals."""
    batch, length = model.segments.shape[:2]
    labels = lengths.new_empty((samples, batch, length), dtype=torch.int64)
    sizes, rows = model.sizes, samples * batch
    wide = power_of_two(max(sizes.labels, sizes.lengths))
    grid, constants = sizes._replace(block=max(1, tile_size() // wide), warps=1).flat(rows)
    launch(
        search.trace, grid, lengths, previous, last, lengths if uniforms is None else uniforms,
        model.counts, labels, rows, batch, length, MASKED=model.rows is not None, DRAW=uniforms is not None,
        **constants,
    )  # fmt: skip
    if model.rows is None:
        return labels
    return labels.gather(-1, model.rows.inverse.expand(samples, -1, -1))


@op("semi_markov_best")
def semi_markov_best(
    segments: Tensor, transitions: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Find the best segmentation (B, T), as labels at starts and -1 elsewhere, and its score (B,)."""
    model = Model.of(segments, transitions, mask)
    batch, length, _, labels = segments.shape
    scores, last = segments.new_empty(batch), segments.new_empty(batch, dtype=torch.int32)
    lengths, previous = (last.new_empty(batch, length, labels) for _ in range(2))
    grid, constants = model.sizes.sequential(batch)
    launch(
        search.best, grid, model.segments, model.transitions, model.counts, scores, lengths, previous, last,
        batch, length, *model.strides(), MASKED=mask is not None, **constants,
    )  # fmt: skip
    return _trace(model, lengths, previous, last, None, 1).squeeze(0), scores


@op("semi_markov_sample")
def semi_markov_sample(
    segments: Tensor, transitions: Tensor, mask: Tensor | None, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    """Draw segmentations (S, B, T) with uniform numbers (S, B, 2 T); return whether any exist (B,)."""
    model = Model.of(segments, transitions, mask)
    _, lengths, previous, last = inside(model, keep=True)
    drawn = _trace(model, lengths, previous, last, uniforms.contiguous(), len(uniforms))
    return drawn, last.sum(-1) > 0

"""The ops of the linear chain; each has the arguments of the op of `foveal_native` of the same name.

Axes: B batch, T positions, K states, S samples, C chunks.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from . import _chain_kernels as kernels, _chain_sweeps as sweeps
from ._launching import has_fast_log, launch, op, power_of_two, tile_size

# A chain with at least this many positions and at most this many states is split into chunks of this many
# steps. A step waits for the previous one and leaves most of a GPU idle; chunks run at once, and cost a
# factor K of arithmetic.
LONG = 256
FEW_STATES = 16
CHUNK = 32


class Layout(NamedTuple):
    """The tile sizes for K states."""

    states: int
    padded: int
    block: int  # items of a program
    stages: int  # steps that loads run ahead
    warps: int

    def flat(self, rows: int) -> tuple[tuple[int], dict[str, int]]:
        """Return the grid and the constants of a kernel that computes all positions at once."""
        grid = (-(-rows // self.block),)
        sizes = {"STATES": self.states, "PADDED": self.padded, "BLOCK": self.block}
        return grid, sizes | {"num_warps": self.warps}

    def sequential(self, rows: int) -> tuple[tuple[int], dict[str, int]]:
        """Return the grid and the constants of a kernel that runs through the positions."""
        grid, sizes = self.flat(rows)
        return grid, sizes | {"STAGES": self.stages}


def layout(states: int, itemsize: int = 4) -> Layout:
    """Choose tile sizes: many items in a program if K is small, many warps if K is large.

    Args:
        states: K.
        itemsize: Bytes of a score.
    """
    padded = power_of_two(states)
    block = max(1, tile_size() // padded**2)
    tile = block * padded**2 * itemsize
    # One warp needs no barrier; with several, the barriers of a step cost more than the warps gain, up
    # to 16 states. Two sweeps of a tangent must fit into the 99 kB of the smaller GPUs.
    warps = 1 if padded < 32 else 4 if padded < 64 else 16
    return Layout(states, padded, block, 4 if tile <= 8 << 10 else 2, warps)


def flags_of(mask: Tensor | None) -> Tensor | None:
    """Convert a mask (B, T) to int32; loads of narrower numbers do not run ahead of a loop.

    Bit 0: the position is real. Bit 1: a real position precedes it, too. Bit 2: the row has a real position.
    """
    if mask is None:
        return None
    ones = mask.to(torch.int32)
    later = mask & (ones.cumsum(-1, dtype=torch.int32) > 1)
    return ones + 2 * later.to(torch.int32) + 4 * mask.any(-1, keepdim=True).to(torch.int32)


class Chain(NamedTuple):
    """Potentials and their layout."""

    unary: Tensor
    transitions: Tensor
    flags: Tensor | None
    sizes: Layout

    @classmethod
    def of(cls, unary: Tensor, transitions: Tensor, mask: Tensor | None) -> "Chain":
        """Make the tensors contiguous."""
        sizes = layout(unary.shape[-1], unary.element_size())
        return cls(unary.contiguous(), transitions.contiguous(), flags_of(mask), sizes)

    @property
    def chunks(self) -> int:
        """The number of chunks; 1 if the chain is not split."""
        return num_chunks(self.unary.shape[1], self.sizes.states)

    def strides(self) -> tuple[int, int]:
        """Return the strides of items and of steps, 0 where the transitions are shared."""
        states, (items, steps) = self.sizes.states, self.transitions.shape[:2]
        return steps * states**2 * (items > 1), states**2 * (steps > 1)


def num_chunks(length: int, states: int) -> int:
    """Return the number of chunks of a chain; 1 if it is not split."""
    return -(-(length - 1) // CHUNK) if length >= LONG and states <= FEW_STATES else 1


class Inside(NamedTuple):
    """Results of the inside pass; the last two are empty unless kept."""

    log_partition: Tensor  # (B,)
    conditionals: Tensor  # (B, T-1, K, K)
    last: Tensor  # (B, K)


def inside(chain: Chain, *, keep: bool) -> Inside:
    """Run the inside pass, in chunks if the chain is long.

    Args:
        chain: The potentials.
        keep: Whether to write conditionals.
    """
    unary, chunks, states = chain.unary, chain.chunks, chain.sizes.states
    batch, length, _ = unary.shape
    found = Inside(
        unary.new_empty(batch),
        unary.new_empty((batch, length - 1, states, states) if keep else 0),
        unary.new_empty((batch, states) if keep or chunks > 1 else 0),
    )
    if chunks == 1:
        _inside(chain, found, keep=keep, first="unary", vectors=(unary,) * 4)
        return found
    totals = [unary.new_empty(batch, chunks, states, states) for _ in range(2)]
    starts = [unary.new_empty(batch, chunks, states) for _ in range(2)]
    _inside(chain, found, keep=False, first="units", vectors=(unary, unary, *totals))
    launch(
        kernels.scan, (batch,), unary, _or(chain.flags, unary), *totals, *starts, found.log_partition,
        found.last, length, chunks, STATES=states, PADDED=chain.sizes.padded,
        MASKED=chain.flags is not None, FAST=has_fast_log(unary), STAGES=chain.sizes.stages, num_warps=1,
    )  # fmt: skip
    if keep:
        _inside(chain, found, keep=True, first="given", vectors=(*starts, unary, unary))
    return found


def _inside(
    chain: Chain, found: Inside, *, keep: bool, first: str, vectors: tuple[Tensor, ...]
) -> None:
    unary, transitions, flags, sizes = chain
    batch, length, states = unary.shape
    rows = batch * {"unary": 1, "given": chain.chunks, "units": chain.chunks * states}[first]
    grid, constants = sizes.sequential(rows)
    launch(
        kernels.inside, grid,
        unary, transitions, _or(flags, unary), *vectors, *found, rows, length, *chain.strides(),
        chain.chunks, length - 1 if first == "unary" else CHUNK,
        MASKED=flags is not None, SHARED=transitions.shape[1] == 1, KEEP=keep, FIRST=first,
        FAST=has_fast_log(unary), **constants,
    )  # fmt: skip


def _or(given: Tensor | None, other: Tensor) -> Tensor:
    """Return `other` for a tensor that a kernel does not read."""
    return other if given is None else given


class Sweep(NamedTuple):
    """The inputs of a sweep: scales and terms (B, T, K) or neither, and then the first value (B, K)."""

    tables: Tensor
    flags: Tensor | None
    scales: Tensor | None
    terms: Tensor | None
    first: Tensor | None
    sizes: Layout

    def run(self, like: Tensor, *, back: bool) -> Tensor:
        """Sweep over all positions, in chunks if the chain is long; return x (B, T, K).

        Args:
            like: A tensor with the shape and the dtype of the result.
            back: Whether to run from the last position to the first.
        """
        out = torch.empty_like(like)
        batch, length, states = like.shape
        chunks = num_chunks(length, states)
        whole = "term" if self.first is None else "given"
        if chunks == 1:
            self._launch(out, None, self.first, chunks, batch, back=back, start=whole)
            return out
        totals = like.new_empty(batch, chunks, states, states)
        self._launch(out, totals, None, chunks, batch * chunks * states, back=back, start="units")
        terms = None
        if self.terms is not None:
            rests = like.new_empty(batch, chunks, states)
            self._launch(out, rests, None, chunks, batch * chunks, back=back, start="zero")
            terms = torch.cat([self.terms.narrow(1, length - 1 if back else 0, 1), rests], 1)
        over = Sweep(totals, None, None, terms, self.first, self.sizes)
        before = like.new_empty(batch, chunks + 1, states)
        over._launch(before, None, self.first, 1, batch, back=False, start=whole)
        starts = before.narrow(1, 0, chunks).contiguous()
        self._launch(out, None, starts, chunks, batch * chunks, back=back, start="given")
        return out

    def _launch(
        self,
        out: Tensor,
        ends: Tensor | None,
        first: Tensor | None,
        chunks: int,
        rows: int,
        *,
        back: bool,
        start: str,
    ) -> None:
        length = out.shape[1]
        grid, constants = self.sizes.sequential(rows)
        has_terms = self.terms is not None and start != "units"
        launch(
            sweeps.sweep, grid,
            self.tables, _or(self.flags, out), _or(self.scales, out), _or(self.terms, out),
            _or(first, out), out, _or(ends, out), rows, length, chunks,
            length - 1 if chunks == 1 else CHUNK,
            BACK=back, MASKED=self.flags is not None, SCALE=self.scales is not None, TERM=has_terms,
            FIRST=start, WRITE=ends is None, **constants,
        )  # fmt: skip


@op("chain_log_partition")
def chain_log_partition(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> Tensor:
    """Compute log Z (B,)."""
    return inside(Chain.of(unary, transitions, mask), keep=False).log_partition


@op("chain_marginals")
def chain_marginals(
    unary: Tensor, transitions: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute log Z (B,), node marginals (B, T, K) and pair marginals (B, T-1, K, K)."""
    chain = Chain.of(unary, transitions, mask)
    log_partition, conditionals, last = inside(chain, keep=True)
    masses = Sweep(conditionals, None, None, None, last, chain.sizes).run(chain.unary, back=True)
    nodes, pairs = torch.empty_like(chain.unary), torch.empty_like(conditionals)
    rows = unary.shape[0] * unary.shape[1]
    grid, constants = chain.sizes.flat(rows)
    launch(
        sweeps.marginals_join, grid, conditionals, masses, _or(chain.flags, masses), nodes, pairs, rows,
        unary.shape[1], MASKED=mask is not None, **constants,
    )  # fmt: skip
    return log_partition, nodes, pairs


@op("chain_tangent")
def chain_tangent(
    nodes: Tensor,
    pairs: Tensor,
    mask: Tensor | None,
    on_nodes: Tensor | None,
    on_pairs: Tensor | None,
    want_pairs: bool,
) -> tuple[Tensor, Tensor]:
    """Compute the derivatives of both marginals along a direction; the second is empty unless wanted."""
    nodes, pairs, flags = nodes.contiguous(), pairs.contiguous(), flags_of(mask)
    batch, length, states = nodes.shape
    sizes, rows = layout(states, nodes.element_size()), batch * length
    scales, terms = (nodes.new_empty(2, batch, length, states) for _ in range(2))
    grid, flat = sizes.flat(rows)
    has = {"NODES": on_nodes is not None, "PAIRS": on_pairs is not None, "MASKED": mask is not None}
    given = (
        nodes,
        pairs,
        _or(flags, nodes),
        nodes if on_nodes is None else on_nodes.contiguous(),
        pairs if on_pairs is None else on_pairs.contiguous(),
    )
    launch(sweeps.tangent_prepare, grid, *given, scales, terms, rows, length, **has, **flat)
    past, future = (
        Sweep(pairs, flags, scales.select(0, side), terms.select(0, side), None, sizes).run(
            nodes, back=bool(side)
        )
        for side in range(2)
    )
    along_nodes = torch.empty_like(nodes)
    along_pairs = torch.empty_like(pairs) if want_pairs else pairs.new_empty(0)
    launch(
        sweeps.tangent_join, grid, *given, past, future, along_nodes, along_pairs, rows, length,
        WANT_PAIRS=want_pairs, **has, **flat,
    )  # fmt: skip
    return along_nodes, along_pairs


def _follow(pointers: Tensor) -> Tensor:
    """Trace pointers (..., T, K) to labels (..., T)."""
    *lead, length, states = pointers.shape
    labels = pointers.new_empty((*lead, length), dtype=torch.int64)
    rows = labels.numel() // length
    padded = power_of_two(states)
    block = max(1, tile_size() // 4 // padded)
    launch(
        kernels.follow, (-(-rows // block),), pointers, labels, rows, length,
        STATES=states, PADDED=padded, BLOCK=block, STAGES=4, num_warps=1,
    )  # fmt: skip
    return labels


@op("chain_best")
def chain_best(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Find the best labeling (B, T) and its score (B,)."""
    chain = Chain.of(unary, transitions, mask)
    batch, length, states = unary.shape
    scores = unary.new_empty(batch)
    pointers = unary.new_empty((batch, length, states), dtype=torch.int32)
    grid, constants = chain.sizes.sequential(batch)
    launch(
        kernels.best, grid, chain.unary, chain.transitions, _or(chain.flags, chain.unary), scores,
        pointers, batch, length, *chain.strides(), MASKED=mask is not None, **constants,
    )  # fmt: skip
    return _follow(pointers), scores


@op("chain_sample")
def chain_sample(
    unary: Tensor, transitions: Tensor, mask: Tensor | None, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    """Draw labelings (S, B, T) with uniform numbers of that shape; return whether any exist (B,)."""
    chain = Chain.of(unary, transitions, mask)
    _, conditionals, last = inside(chain, keep=True)
    batch, length, states = unary.shape
    pointers = unary.new_empty((len(uniforms), batch, length, states), dtype=torch.int32)
    grid, constants = chain.sizes.flat(uniforms.numel())
    launch(
        kernels.draw, grid, conditionals, last, uniforms.contiguous(), pointers, uniforms.numel(), batch,
        length, **constants,
    )  # fmt: skip
    return _follow(pointers), last.sum(-1) > 0

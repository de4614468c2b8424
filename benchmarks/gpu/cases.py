"""The calls of the ops that are compiled, predicted and measured: the sizes of `results/structures_native.json`.

A call needs tensors with shapes and a device; a recording uses device "meta", a measurement "cuda".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from foveal_triton import _projective_ops, _span_ops
from torch import Tensor

OPS = torch.ops.foveal_triton
Size = tuple[int, ...]
Calls = Mapping[str, Callable[[], Any]]


@dataclass(frozen=True)
class Family:
    """One structure: its sizes, and the calls of its ops for a size on a device."""

    name: str
    axes: str
    sizes: tuple[Size, ...]
    largest: Size  # the largest that the kernels support; it is only compiled, also in float64
    calls: Callable[[Size, str, torch.dtype], Calls]


def _drawn(device: str, dtype: torch.dtype, *shape: int) -> Tensor:
    if device == "meta":
        return torch.empty(shape, device=device, dtype=dtype)
    return torch.randn(shape, device=device, dtype=dtype)


def _uniform(device: str, *shape: int) -> Tensor:
    if device == "meta":
        return torch.empty(shape, device=device, dtype=torch.float64)
    return torch.rand(shape, device=device, dtype=torch.float64)


def _all_real(device: str, *shape: int) -> Tensor:
    if device == "meta":
        return torch.empty(shape, device=device, dtype=torch.bool)
    return torch.ones(shape, device=device, dtype=torch.bool)


def chain_calls(size: Size, device: str, dtype: torch.dtype = torch.float32) -> Calls:
    """Return the calls for (B, T, K), with a table for each step and a mask."""
    batch, length, states = size
    unary = _drawn(device, dtype, *size)
    transitions = _drawn(device, dtype, batch, length - 1, states, states)
    mask = _all_real(device, batch, length)
    uniforms = _uniform(device, 4, batch, length)
    nodes, pairs = torch.empty_like(unary), torch.empty_like(transitions)

    def tangent() -> Any:
        return OPS.chain_tangent(nodes, pairs, mask, unary, transitions, True)

    if device != "meta":
        _, nodes, pairs = OPS.chain_marginals(unary, transitions, mask)
    return {
        "log_partition": lambda: OPS.chain_log_partition(unary, transitions, mask),
        "marginals": lambda: OPS.chain_marginals(unary, transitions, mask),
        "tangent": tangent,
        "argmax": lambda: OPS.chain_best(unary, transitions, mask),
        "sample": lambda: OPS.chain_sample(unary, transitions, mask, uniforms),
    }


def alignment_calls(size: Size, device: str, dtype: torch.dtype = torch.float32) -> Calls:
    """Return the calls for (B, S, T), with a mask."""
    batch, source, target = size
    moves = _drawn(device, dtype, batch, source + 1, target + 1, 3)
    mask = _all_real(device, batch, source + target)
    uniforms = _uniform(device, 4, batch, source + target)
    marginals = torch.empty_like(moves)
    if device != "meta":
        _, marginals = OPS.alignment_marginals(moves, mask)

    def tangent() -> Any:
        return OPS.alignment_tangent(marginals, mask, moves)

    return {
        "log_partition": lambda: OPS.alignment_log_partition(moves, mask),
        "marginals": lambda: OPS.alignment_marginals(moves, mask),
        "tangent": tangent,
        "argmax": lambda: OPS.alignment_best(moves, mask),
        "sample": lambda: OPS.alignment_sample(moves, mask, uniforms),
    }


def ctc_calls(size: Size, device: str, dtype: torch.dtype = torch.float32) -> Calls:
    """Return the calls for (B, T, L), with 32 symbols and masks."""
    batch, frames, labels = size
    log_probs = _drawn(device, dtype, batch, frames, 32)
    if device != "meta":
        log_probs = log_probs.log_softmax(-1)
    targets = _uniform(device, batch, labels).mul(31).long() + 1
    masks = _all_real(device, batch, frames), _all_real(device, batch, labels)
    return {
        "log_partition": lambda: OPS.ctc_log_partition(log_probs, targets, *masks, 0),
        "marginals": lambda: OPS.ctc_marginals(log_probs, targets, *masks, 0),
    }


def projective_calls(
    size: Size, device: str, dtype: torch.dtype = torch.float32, *, single_root: bool = True
) -> Calls:
    """Return the calls for (B, n), with a mask."""
    batch, words = size
    arcs = _drawn(device, dtype, batch, words + 1, words + 1)
    mask = _all_real(device, batch, words)
    uniforms = _uniform(device, 4, batch, 2 * words + 2)
    nodes = _projective_ops.nodes_of(arcs, None, single_root=single_root)
    marginals = torch.empty_like(arcs)
    kept = arcs.new_empty(batch, _projective_ops.kept_size(nodes))
    if device != "meta":
        _, marginals, kept = OPS.projective_marginals(arcs, mask, single_root, True)

    def tangent() -> Any:
        return OPS.projective_tangent(marginals, kept, mask, arcs, single_root)

    return {
        "log_partition": lambda: OPS.projective_log_partition(arcs, mask, single_root),
        "marginals": lambda: OPS.projective_marginals(arcs, mask, single_root, True),
        "tangent": tangent,
        "argmax": lambda: OPS.projective_best(arcs, mask, single_root),
        "sample": lambda: OPS.projective_sample(arcs, mask, uniforms, single_root),
    }


def span_calls(size: Size, device: str, dtype: torch.dtype = torch.float32) -> Calls:
    """Return the calls for (B, n), with a mask."""
    batch, words = size
    spans = _drawn(device, dtype, batch, words, words)
    mask = _all_real(device, batch, words)
    uniforms = _uniform(device, 4, batch, words)
    kept = spans.new_empty(batch, _span_ops.kept_size(_span_ops.nodes_of(spans, None)))
    if device != "meta":
        _, _, kept = OPS.span_marginals(spans, mask, True)

    def tangent() -> Any:
        return OPS.span_tangent(kept, mask, spans)

    return {
        "log_partition": lambda: OPS.span_log_partition(spans, mask),
        "marginals": lambda: OPS.span_marginals(spans, mask, True),
        "tangent": tangent,
        "argmax": lambda: OPS.span_best(spans, mask),
        "sample": lambda: OPS.span_sample(spans, mask, uniforms),
    }


def segment_calls(size: Size, device: str, dtype: torch.dtype = torch.float32) -> Calls:
    """Return the calls for (B, T, D, K), with a table for each step and a mask."""
    batch, length, _, labels = size
    segments = _drawn(device, dtype, *size)
    transitions = _drawn(device, dtype, batch, length - 1, labels, labels)
    mask = _all_real(device, batch, length)
    uniforms = _uniform(device, 4, batch, 2 * length)
    masses, pairs = torch.empty_like(segments), torch.empty_like(transitions)
    if device != "meta":
        _, masses, pairs = OPS.semi_markov_marginals(segments, transitions, mask)

    def tangent() -> Any:
        return OPS.semi_markov_tangent(masses, pairs, mask, segments, transitions, True)

    return {
        "log_partition": lambda: OPS.semi_markov_log_partition(segments, transitions, mask),
        "marginals": lambda: OPS.semi_markov_marginals(segments, transitions, mask),
        "tangent": tangent,
        "argmax": lambda: OPS.semi_markov_best(segments, transitions, mask),
        "sample": lambda: OPS.semi_markov_sample(segments, transitions, mask, uniforms),
    }


FAMILIES = (
    Family(
        "chain",
        "(batch, positions, states)",
        (
            (32, 25, 2),
            (64, 25, 2),
            (32, 100, 2),
            (32, 50, 20),
            (16, 200, 50),
            (16, 1000, 2),
            (16, 1000, 10),
        ),
        (2, 30, 64),
        chain_calls,
    ),
    Family(
        "alignment",
        "(batch, source, target)",
        ((32, 16, 16), (32, 50, 50), (16, 100, 100), (16, 200, 60)),
        (2, 511, 518),
        alignment_calls,
    ),
    Family(
        "CTC",
        "(batch, frames, labels)",
        ((32, 50, 10), (16, 200, 40), (16, 500, 60)),
        (2, 1100, 511),
        ctc_calls,
    ),
    Family(
        "projective tree",
        "(batch, words)",
        ((32, 10), (32, 20), (32, 40), (16, 80)),
        (2, 255),
        projective_calls,
    ),
    Family("span tree", "(batch, words)", ((32, 20), (32, 40)), (2, 256), span_calls),
    Family(
        "semi-Markov",
        "(batch, positions, lengths, labels)",
        ((32, 25, 5, 2), (16, 50, 8, 4), (16, 200, 20, 20)),
        (2, 30, 64, 64),
        segment_calls,
    ),
)

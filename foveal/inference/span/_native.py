"""Bracketings with the C++ kernels (the recurrences are in `native/src/span.h`) and with the Triton kernels
(in `gpu/foveal_triton/_span_kernels.py`).

As in the passes, the labels of a span are summed before the recursion. Afterwards, its probability
is distributed over the labels.

Axes: B batch, n words, L labels, S samples.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from .._derivatives import Tensors
from .._native import NativeSolved, raised, serves
from .._recursions import keep
from .._triton import ops_of, serves as serves_on_gpu
from ._passes import read_spans, sum_labels

# A program of the Triton kernels holds all splits of a span in registers, and counts splits in 32 bits.
_MOST_WORDS = 256


def serves_spans(spans: Float[Tensor, "B n n L"]) -> bool:
    """Return whether the C++ kernels or the Triton kernels support these potentials."""
    return serves(spans) or (spans.shape[1] <= _MOST_WORDS and serves_on_gpu(spans))


class _Summed(NamedTuple):
    """Scores of spans without their labels."""

    scores: Float[Tensor, "B n n"]  # in the dtype of the potentials
    labels: Float[Tensor, "#B #n #n L"]  # p(label | span)
    shift: Float[Tensor, " B"] | None  # to add to the score of a tree


def _summed(spans: Float[Tensor, "B n n L"], mask: Bool[Tensor, "B n"] | None) -> _Summed:
    """Sum over labels in float64. Before rounding the sums, subtract the highest sum of each item,
    because in float32 a score of 1,000 has only four digits after the decimal point.
    """
    totals, labels = sum_labels(spans, mask)
    if spans.shape[-1] == 1 or spans.shape[1] == 0:
        return _Summed(totals.to(spans.dtype), labels, None)
    highest = torch.where(read_spans(spans, mask), totals, -torch.inf).amax((1, 2))
    highest = torch.where(highest == -torch.inf, 0.0, highest)
    num_words = mask.sum(-1) if mask is not None else spans.shape[1]
    num_spans = 2 * num_words - 1  # in every tree; for 0 words, the highest score is 0
    scores = (totals - highest[:, None, None]).to(spans.dtype)
    return _Summed(scores, labels, highest * num_spans)


def _shifted_back(log_partition: Tensor, shift: Tensor | None) -> Tensor:
    return log_partition if shift is None else (log_partition + shift).to(log_partition.dtype)


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    (spans,) = potentials
    scores, _, shift = _summed(spans, mask)
    return _shifted_back(ops_of(scores).span_log_partition.default(scores, mask), shift)


def solve(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> NativeSolved:
    """Compute log Z and the span marginals (B, n, n, L). Save the split weights and, if there are
    labels, the marginals without labels and the label weights.
    """
    (spans,) = potentials
    ops = ops_of(spans)
    if spans.shape[-1] == 1:
        log_partition, nodes, kept = ops.span_marginals.default(spans.squeeze(-1), mask, True)
        return NativeSolved(log_partition, (nodes.unsqueeze(-1),), (kept,))
    scores, labels, shift = _summed(spans, mask)
    log_partition, nodes, kept = ops.span_marginals.default(scores, mask, True)
    log_partition = _shifted_back(log_partition, shift)
    return NativeSolved(log_partition, (labels * nodes.unsqueeze(-1),), (kept, nodes, labels))


def marginals(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Tensors:
    """Compute only the span marginals (B, n, n, L)."""
    (spans,) = potentials
    ops = ops_of(spans)
    if spans.shape[-1] == 1:
        _, nodes, _ = ops.span_marginals.default(spans.squeeze(-1), mask, False)
        return (nodes.unsqueeze(-1),)
    scores, labels, _ = _summed(spans, mask)
    _, nodes, _ = ops.span_marginals.default(scores, mask, False)
    return (labels * nodes.unsqueeze(-1),)


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B n"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivative of the span marginals."""
    del wanted  # the only potential always needs its gradient
    _, kept, *of_labels = saved
    (direction,) = directions
    assert direction is not None
    tangent_op = ops_of(kept).span_tangent.default
    if not of_labels:
        return (tangent_op(kept, mask, direction.squeeze(-1)).unsqueeze(-1),)
    nodes, labels = of_labels
    on_labels = keep(direction, read_spans(direction, mask))
    on_spans = (labels * on_labels).sum(-1)
    along = tangent_op(kept, mask, on_spans).unsqueeze(-1)
    shares = nodes.unsqueeze(-1) * (on_labels - on_spans.unsqueeze(-1))
    return (labels * (along + shares),)


def best(
    spans: Float[Tensor, "B n n L"], mask: Bool[Tensor, "B n"] | None
) -> tuple[Bool[Tensor, "B n n L"], Float[Tensor, " B"]]:
    """Find the best bracketing and its score."""
    scores, labels = raised(spans).max(-1)
    chosen, score = ops_of(scores).span_best.default(scores, mask)
    return chosen.unsqueeze(-1) & one_hot(labels, spans.shape[-1]).bool(), score


def sample(
    spans: Float[Tensor, "B n n L"],
    mask: Bool[Tensor, "B n"] | None,
    num_samples: int,
    generator: torch.Generator | None,
) -> tuple[Bool[Tensor, "S B n n L"], Bool[Tensor, " B"]]:
    """Draw exact samples, with one uniform number for each split; return whether any exist."""
    scores, labels, _ = _summed(raised(spans), mask)
    shape = (num_samples, *spans.shape[:2])
    uniforms = torch.rand(shape, dtype=torch.float64, device=spans.device, generator=generator)
    chosen, possible = ops_of(scores).span_sample.default(scores, mask, uniforms)
    if spans.shape[-1] == 1:
        return chosen.unsqueeze(-1), possible
    # The highest of w / e with e exponential is a draw from w.
    noise = labels.new_empty(num_samples, *labels.shape).exponential_(generator=generator)
    drawn = one_hot((labels / noise).argmax(-1), spans.shape[-1]).bool()
    return chosen.unsqueeze(-1) & drawn, possible

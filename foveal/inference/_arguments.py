"""Checks of the arguments of the inference functions.

A mask has one entry for each position of each item. It is not broadcast over the batch, because
C++ kernels and PyTorch operations must read the same entries. Transitions may be shared over the
batch or over the steps, along axes of size 1.

Axes: B batch, T positions, D lengths, K states or labels, n words or items, R rows, C columns,
V symbols, L labels.
"""

import torch
from torch import Tensor

from ..errors import ShapeError, ValueRangeError
from ._requests import is_transformed


def check_chain(unary: Tensor, transitions: Tensor, mask: Tensor | None) -> None:
    """Check scores (B, T, K), transitions (B or 1, T-1 or 1, K, K), and mask (B, T)."""
    if unary.dim() != 3 or 0 in unary.shape[1:]:
        _refuse("chain", "unary", "(B, T, K) with T >= 1 and K >= 1", unary)
    batch, length, states = unary.shape
    _check_transitions("chain", transitions, batch, length - 1, states)
    _check_mask("chain", "mask", mask, (batch, length), unary.device)


def check_semi_markov(segments: Tensor, transitions: Tensor, mask: Tensor | None) -> None:
    """Check scores (B, T, D, K), transitions (B or 1, T-1 or 1, K, K), and mask (B, T)."""
    if segments.dim() != 4 or 0 in segments.shape[1:]:
        _refuse("semi-Markov model", "segments", "(B, T, D, K) with T, D, K >= 1", segments)
    batch, length, _, labels = segments.shape
    _check_transitions("semi-Markov model", transitions, batch, length - 1, labels)
    _check_mask("semi-Markov model", "mask", mask, (batch, length), segments.device)


def check_alignment(moves: Tensor, source_mask: Tensor | None, target_mask: Tensor | None) -> None:
    """Check scores (B, R, C, 3), and masks (B, R-1) and (B, C-1)."""
    if moves.dim() != 4 or moves.shape[3] != 3 or 0 in moves.shape[1:3]:
        _refuse("alignment", "moves", "(B, R, C, 3) with R >= 1 and C >= 1", moves)
    batch, rows, columns, _ = moves.shape
    _check_mask("alignment", "source_mask", source_mask, (batch, rows - 1), moves.device)
    _check_mask("alignment", "target_mask", target_mask, (batch, columns - 1), moves.device)


def check_ctc(
    log_probs: Tensor,
    targets: Tensor,
    frame_mask: Tensor | None,
    target_mask: Tensor | None,
    blank: int,
) -> None:
    """Check log-probabilities (B, T, V), labels (B, L), masks (B, T) and (B, L), and 0 <= blank < V."""
    if log_probs.dim() != 3 or log_probs.shape[2] == 0:
        _refuse("CTC", "log_probs", "(B, T, V) with V >= 1", log_probs)
    batch, frames, symbols = log_probs.shape
    if targets.dim() != 2 or len(targets) != batch:
        _refuse("CTC", "targets", f"({batch}, L)", targets)
    if not 0 <= blank < symbols:
        raise ValueRangeError(
            f"CTC: blank must be a symbol, 0..{symbols - 1}, got {blank}. Pass the index of the "
            f"symbol that stands for no label."
        )
    _check_mask("CTC", "frame_mask", frame_mask, (batch, frames), log_probs.device)
    _check_mask("CTC", "target_mask", target_mask, tuple(targets.shape), log_probs.device)
    if torch.compiler.is_compiling() or is_transformed():
        return
    outside = (targets < 0) | (targets >= symbols) | (targets == blank)
    if target_mask is not None:
        outside = outside & target_mask
    if bool(outside.any()):
        raise ValueRangeError(
            f"CTC: targets must be symbols, 0..{symbols - 1}, other than the blank {blank}, got "
            f"{targets[outside][0].item()} at index {outside.nonzero()[0].tolist()}. Mask the "
            f"padding of targets with target_mask."
        )


def check_arcs(arcs: Tensor, mask: Tensor | None) -> None:
    """Check scores (B, n+1, n+1) and mask (B, n)."""
    if arcs.dim() != 3 or arcs.shape[1] != arcs.shape[2] or arcs.shape[1] == 0:
        _refuse("tree", "arcs", "(B, n+1, n+1), the root first", arcs)
    _check_mask("tree", "mask", mask, (arcs.shape[0], arcs.shape[1] - 1), arcs.device)


def check_spans(spans: Tensor, mask: Tensor | None) -> None:
    """Check scores (B, n, n, L) and mask (B, n)."""
    if spans.dim() != 4 or spans.shape[1] != spans.shape[2] or spans.shape[3] == 0:
        _refuse("bracketing", "spans", "(B, n, n, L) with L >= 1", spans)
    _check_mask("bracketing", "mask", mask, tuple(spans.shape[:2]), spans.device)


def check_items(scores: Tensor, k: int, mask: Tensor | None) -> None:
    """Check scores (B, n), mask (B, n), and k >= 0."""
    if scores.dim() != 2:
        _refuse("subset", "scores", "(B, n)", scores)
    if k < 0:
        raise ValueRangeError(
            f"subset: k must be at least 0, got {k}. Pass the number of items to choose."
        )
    _check_mask("subset", "mask", mask, tuple(scores.shape), scores.device)


def _refuse(structure: str, name: str, expected: str, got: Tensor) -> None:
    raise ShapeError(
        f"{structure}: {name} must have the shape {expected}, got {tuple(got.shape)}. "
        f"These functions take one batch axis: flatten several into one, or unsqueeze(0) for none."
    )


def _check_transitions(
    structure: str, transitions: Tensor, batch: int, steps: int, states: int
) -> None:
    shape = transitions.shape
    if (
        len(shape) != 4
        or (shape[0] != 1 and shape[0] != batch)
        or (shape[1] != 1 and shape[1] != steps)
        or shape[2] != states
        or shape[3] != states
    ):
        raise ShapeError(
            f"{structure}: transitions must have the shape ({batch}, {steps}, {states}, {states}), "
            f"where either of the first two may be 1, got {tuple(shape)}. "
            f"Pass transitions[None, None] for one table (K, K) that all items and steps share."
        )


def _check_mask(
    structure: str,
    name: str,
    mask: Tensor | None,
    shape: tuple[int, ...],
    device: torch.device,
) -> None:
    if mask is None:
        return
    if mask.shape != shape:
        raise ShapeError(
            f"{structure}: {name} must have the shape {shape}, got {tuple(mask.shape)}. "
            f"Expand a mask that all items share: {name}.expand{shape}."
        )
    if mask.dtype != torch.bool or mask.device != device:
        raise ValueRangeError(
            f"{structure}: {name} must be a bool tensor on {device}, got {mask.dtype} on "
            f"{mask.device}. Pass {name}.bool().to(scores.device)."
        )

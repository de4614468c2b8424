"""CTC: log-likelihoods of labels, and the probability that a frame emits a symbol.

    log Z           = log sum over paths that spell the labels of exp( sum over t of log_probs[t, path_t] )
    marginals[t, v] = p(path_t = v) = d log Z / d log_probs[t, v]

The C++ kernel (`native/src/ctc.h`) and the Triton kernel (`gpu/foveal_triton/_ctc_kernels.py`) read
log-probabilities and labels, without a table of moves. The reference, and the gradient through the marginals, use the lattice of `_ctc_lattice`.

Axes: B batch, T frames, V symbols, L labels.
Reference: Graves et al. 2006.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .. import _native
from .._arguments import check_ctc
from .._requests import records_gradient, wants_gradient
from .._triton import ops_of, serves as serves_on_gpu
from ._ctc_lattice import ctc_lattice, emitting_states
from ._functions import alignment_log_partition, alignment_marginals

# The Triton kernels have one label in each lane of a program.
_MOST_LABELS = 511


def _has_kernels(log_probs: Tensor, targets: Tensor) -> bool:
    """Return whether the C++ or the Triton kernels support these tensors."""
    if _native.serves(log_probs):
        return True
    return targets.shape[1] <= _MOST_LABELS and serves_on_gpu(log_probs)


def ctc_log_partition(
    log_probs: Float[Tensor, "B T V"],
    targets: Int[Tensor, "B L"],
    frame_mask: Bool[Tensor, "B T"] | None = None,
    target_mask: Bool[Tensor, "B L"] | None = None,
    *,
    blank: int = 0,
) -> Float[Tensor, " B"]:
    """Compute the log-likelihood of labels by CTC, in O(T L) time; twice differentiable.

    Args:
        log_probs: Log-probability of each symbol in each frame.
        targets: Labels, as indices of symbols other than the blank.
        frame_mask: True on real frames; by default, all are real.
        target_mask: True on real labels; by default, all are real.
        blank: Index of the blank.

    Returns:
        Log-likelihood of each batch item; -inf if its frames cannot spell its labels.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: A mask is not boolean or is on another device, the blank is not a symbol, or a target is the
            blank or not a symbol.

    Examples:
        >>> even = torch.full((1, 3, 2), 0.5).log()
        >>> ctc_log_partition(even, torch.tensor([[1]])).exp()    # 6 of 8 paths spell it
        tensor([0.7500])
    """
    check_ctc(log_probs, targets, frame_mask, target_mask, blank)
    if not _has_kernels(log_probs, targets):
        lattice = ctc_lattice(log_probs, targets, target_mask, blank)
        return alignment_log_partition(lattice.moves, frame_mask, lattice.real)
    given = _native.raised(log_probs), targets.long(), frame_mask, target_mask, blank
    if wants_gradient((log_probs,)):
        return _LogPartition.apply(*given)
    return ops_of(log_probs).ctc_log_partition.default(*given)


def ctc_marginals(
    log_probs: Float[Tensor, "B T V"],
    targets: Int[Tensor, "B L"],
    frame_mask: Bool[Tensor, "B T"] | None = None,
    target_mask: Bool[Tensor, "B L"] | None = None,
    *,
    blank: int = 0,
) -> Float[Tensor, "B T V"]:
    """Compute the probability that a frame emits a symbol, given the labels; differentiable once more.

    Args:
        log_probs: Log-probability of each symbol in each frame.
        targets: Labels, as indices of symbols other than the blank.
        frame_mask: True on real frames; by default, all are real.
        target_mask: True on real labels; by default, all are real.
        blank: Index of the blank.

    Returns:
        Probability of each symbol in each frame, 0 on padding and where no path is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: A mask is not boolean or is on another device, the blank is not a symbol, or a target is the
            blank or not a symbol.

    Examples:
        >>> even = torch.full((1, 3, 2), 0.5).log()
        >>> ctc_marginals(even, torch.tensor([[1]]))    # 3 of 6 paths begin with a blank
        tensor([[[0.5000, 0.5000],
                 [0.3333, 0.6667],
                 [0.5000, 0.5000]]])
    """
    check_ctc(log_probs, targets, frame_mask, target_mask, blank)
    if _has_kernels(log_probs, targets) and not wants_gradient((log_probs,)):
        given = _native.raised(log_probs), targets.long(), frame_mask, target_mask, blank
        return ops_of(log_probs).ctc_marginals.default(*given)[1]
    return _lattice_marginals(log_probs, targets, frame_mask, target_mask, blank)


def _lattice_marginals(
    log_probs: Tensor,
    targets: Tensor,
    frame_mask: Tensor | None,
    target_mask: Tensor | None,
    blank: int,
) -> Tensor:
    lattice = ctc_lattice(log_probs, targets, target_mask, blank)
    emitted = emitting_states(alignment_marginals(lattice.moves, frame_mask, lattice.real))
    return emitted.new_zeros(log_probs.shape).scatter_add(-1, lattice.symbols, emitted)


class _LogPartition(torch.autograd.Function):
    """log Z, with the marginals as gradient; a second derivative uses the lattice."""

    @staticmethod
    def forward(ctx: Any, log_probs: Any, *given: Any) -> Any:
        *tensors, ctx.blank = given
        log_partition, found = ops_of(log_probs).ctc_marginals.default(log_probs, *given)
        ctx.save_for_backward(log_probs, found, *tensors)
        return log_partition

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        log_probs, found, targets, frame_mask, target_mask = ctx.saved_tensors
        if records_gradient():
            found = _lattice_marginals(log_probs, targets, frame_mask, target_mask, ctx.blank)
        return grads[0].reshape(-1, 1, 1) * found, None, None, None, None

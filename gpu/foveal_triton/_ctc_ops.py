"""The ops of CTC; each has the arguments of the op of `foveal_native` of the same name.

Axes: B batch, T frames, V symbols, L labels.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _ctc_kernels as kernels
from ._launching import has_fast_log, launch, op, power_of_two, stages_ahead

# Labels that are compared at once: a tile (LANES, AT_ONCE) must fit into registers.
_AT_ONCE = 8


class Inputs(NamedTuple):
    """Inputs of all kernels, with the real labels first."""

    log_probs: Tensor
    frames: Tensor | None  # int32
    labels: Tensor  # int32
    counts: Tensor  # int32, (B,)
    blank: int

    @classmethod
    def of(
        cls,
        log_probs: Tensor,
        targets: Tensor,
        frame_mask: Tensor | None,
        target_mask: Tensor | None,
        blank: int,
    ) -> "Inputs":
        """Sort the labels."""
        batch, most = targets.shape
        targets = targets.to(torch.int32)
        if target_mask is None:
            counts = torch.full((batch,), most, dtype=torch.int32, device=targets.device)
        else:
            counts = target_mask.sum(-1).to(torch.int32)
            order = target_mask.logical_not().to(torch.int32).argsort(dim=-1, stable=True)
            targets = targets.gather(-1, order)
        frames = None if frame_mask is None else frame_mask.to(torch.int32)
        return cls(log_probs.contiguous(), frames, targets.contiguous(), counts, blank)

    @property
    def lanes(self) -> int:
        """The number of labels and one more, as a power of two."""
        return max(_AT_ONCE, power_of_two(self.labels.shape[1] + 1))

    @property
    def warps(self) -> int:
        """Warps of a program; a single warp needs no barrier."""
        return 1 if self.lanes <= 128 else 4 if self.lanes <= 256 else 16

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Frames, labels and counts."""
        frames = self.counts if self.frames is None else self.frames
        return frames, self.labels, self.counts

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """T, V, L and the blank."""
        _, length, symbols = self.log_probs.shape
        return length, symbols, self.labels.shape[1], self.blank

    def inside(self, *, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Compute log Z (B,), and the weights and the last probabilities if they are kept.

        Args:
            keep: Whether to write them.
        """
        batch, length, _ = self.log_probs.shape
        found = (
            self.log_probs.new_empty(batch),
            self.log_probs.new_empty((batch, length, 5, self.lanes) if keep else 0),
            self.log_probs.new_empty((batch, 2) if keep else 0),
        )
        constants: dict[str, Any] = {"KEEP": keep, "FAST": has_fast_log(self.log_probs)}
        launch(
            kernels.inside, (batch,), self.log_probs, *self.tensors, *found, *self.numbers,
            LANES=self.lanes, MASKED=self.frames is not None, STAGES=stages_ahead(self.log_probs),
            num_warps=self.warps, **constants,
        )  # fmt: skip
        return found


@op("ctc_log_partition")
def ctc_log_partition(
    log_probs: Tensor,
    targets: Tensor,
    frame_mask: Tensor | None,
    target_mask: Tensor | None,
    blank: int,
) -> Tensor:
    """Compute the log-likelihood of labels (B,)."""
    return Inputs.of(log_probs, targets, frame_mask, target_mask, blank).inside(keep=False)[0]


@op("ctc_marginals")
def ctc_marginals(
    log_probs: Tensor,
    targets: Tensor,
    frame_mask: Tensor | None,
    target_mask: Tensor | None,
    blank: int,
) -> tuple[Tensor, Tensor]:
    """Compute the log-likelihood (B,) and the probability of each symbol in each frame (B, T, V)."""
    given = Inputs.of(log_probs, targets, frame_mask, target_mask, blank)
    log_partition, weights, ends = given.inside(keep=True)
    batch, length, _ = log_probs.shape
    states = log_probs.new_empty(batch, length, 2, given.lanes)
    launch(
        kernels.outside, (batch,), weights, given.counts, ends, states, length, LANES=given.lanes,
        STAGES=stages_ahead(weights), num_warps=given.warps,
    )  # fmt: skip
    found = torch.zeros_like(given.log_probs)
    # 8 entries of the tile in each thread
    warps = min(16, max(1, given.lanes * _AT_ONCE // 256))
    launch(
        kernels.join, (batch * length,), states, *given.tensors, found, *given.numbers, LANES=given.lanes,
        MASKED=frame_mask is not None, AT_ONCE=_AT_ONCE, num_warps=warps,
    )  # fmt: skip
    return log_partition, found

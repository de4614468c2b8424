"""CTC as a monotone alignment: frames with the states blank, label, blank, ..., label, blank.

A frame is emitted by the state that the path stays in (skip source) or leaves (match); the path leaves
an optional blank without emission by a skip of target.

Axes: T frames, V symbols, L labels, N = 2 L + 1 states.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad


class CtcLattice(NamedTuple):
    """Scores of the moves, the real states, and the symbol of each state."""

    moves: Float[Tensor, "*batch T+1 N+1 3"]
    real: Bool[Tensor, "*states N"]
    symbols: Int[Tensor, "*batch T N"]


def ctc_lattice(
    log_probs: Float[Tensor, "*#batch T V"],
    targets: Int[Tensor, "*#batch L"],
    target_mask: Bool[Tensor, "*#batch L"] | None,
    blank: int,
) -> CtcLattice:
    """Build the lattice of the labels."""
    states, silent, real = _states(targets, target_mask, blank)
    batch = torch.broadcast_shapes(log_probs.shape[:-2], states.shape[:-1])
    frames, num_states = log_probs.shape[-2], states.shape[-1]
    symbols = states.unsqueeze(-2).expand(*batch, frames, num_states)
    emitted = log_probs.expand(*batch, -1, -1).gather(-1, symbols)

    silent, present = silent.unsqueeze(-2), real.unsqueeze(-2)
    leave = torch.where(silent, -torch.inf, emitted)
    stay = torch.where(present, emitted, -torch.inf)
    slip = torch.where(silent, 0.0, -torch.inf).to(emitted.dtype)
    slip = slip.expand(*batch, frames + 1, num_states)
    moves = torch.stack(
        [
            pad(leave, (1, 0, 1, 0), value=-torch.inf),
            pad(stay, (0, 1, 1, 0), value=-torch.inf),
            pad(slip, (1, 0), value=-torch.inf),
        ],
        -1,
    )
    return CtcLattice(moves, real, symbols)


def emitting_states(moves: Tensor) -> Tensor:
    """Return the moves (..., T, N) of a path, or their probabilities, in which a state emits a frame."""
    return moves[..., 1:, :-1, 1] + moves[..., 1:, 1:, 0]


def _states(
    targets: Int[Tensor, "*#batch L"], target_mask: Bool[Tensor, "*#batch L"] | None, blank: int
) -> tuple[Int[Tensor, "*states N"], Bool[Tensor, "*states N"], Bool[Tensor, "*states N"]]:
    """Build the states, real labels first.

    Returns:
        The symbol of each state, whether it can be skipped without emission, and whether it is real.
    """
    size = targets.shape[-1]
    given = torch.ones_like(targets, dtype=torch.bool) if target_mask is None else target_mask
    targets, given = torch.broadcast_tensors(targets, given)
    order = (~given).int().argsort(stable=True, dim=-1)
    labels = torch.where(given, targets, blank).gather(-1, order)
    state = torch.arange(2 * size + 1, device=targets.device)
    real = state <= 2 * given.sum(-1, keepdim=True)
    symbols = torch.full_like(real, blank, dtype=labels.dtype)
    symbols = pad(torch.stack([symbols[..., 1::2], labels], -1).flatten(-2), (0, 1), value=blank)
    # Two equal labels need a blank between them, or the frames would merge them into one.
    before, after = pad(labels, (1, 0), value=-1), pad(labels, (0, 1), value=-2)
    silent = (before != after).repeat_interleave(2, -1)[..., :-1] & (state % 2 == 0)
    return symbols, silent, real

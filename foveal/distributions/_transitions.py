"""Transitions between neighbors: shared by all positions, `(K, K)`, or `(..., T-1, K, K)`.

Entry [t, i, j] scores state i at t followed by j at t+1. Chains and segments share these functions.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..masking import linked_steps, previous_real
from ..shapes import flatten_batch
from ._checks import check_sizes


def check_transitions(owner: str, transitions: Tensor, length: int, num_states: int) -> None:
    """Check the sizes; the number of axes distinguishes the two forms."""
    expected = (num_states, num_states)
    if transitions.ndim != 2:
        expected = (length - 1, *expected)
    got = tuple(transitions.shape[max(0, transitions.ndim - 3) :])
    check_sizes(owner, "transitions", got, expected)


def batch_of_transitions(transitions: Tensor) -> dict[str, torch.Size]:
    """Return the leading shape of the transitions by name, if they have one."""
    return {"transitions": transitions.shape[:-3]} if transitions.ndim > 3 else {}


def flatten_transitions(transitions: Tensor, batch: torch.Size) -> Float[Tensor, "#B #N K K"]:
    """Flatten the transitions as `inference` expects: shared axes have size 1."""
    if transitions.ndim == 2:
        return transitions[None, None]
    if transitions.shape[:-3].numel() == 1:
        return transitions.reshape(1, *transitions.shape[-3:])
    return flatten_batch(transitions, batch, 3)


def per_step(transitions: Tensor) -> Float[Tensor, "... #N K K"]:
    """Add an axis of steps, of size 1 for shared transitions."""
    return transitions.unsqueeze(0) if transitions.ndim == 2 else transitions


def first_real(mask: Bool[Tensor, "*batch T"]) -> Bool[Tensor, "*batch T"]:
    """Mark the first real position of each sequence with True; a sequence of padding has none.

    Args:
        mask: True on real positions.

    Returns:
        True on at most one position of each sequence.

    Examples:
        >>> first_real(torch.tensor([False, True, False, True]))
        tensor([False,  True, False, False])
    """
    return mask & (mask.cumsum(-1) == 1)


def last_real(mask: Bool[Tensor, "*batch T"]) -> Bool[Tensor, "*batch T"]:
    """Mark the last real position of each sequence with True; a sequence of padding has none.

    Args:
        mask: True on real positions.

    Returns:
        True on at most one position of each sequence.

    Examples:
        >>> last_real(torch.tensor([True, False, True, False]))
        tensor([False, False,  True, False])
    """
    return first_real(mask.flip(-1)).flip(-1)


def score_of_steps(
    transitions: Tensor, labels: Int[Tensor, "*shape T"], real: Bool[Tensor, "*shape T"]
) -> Float[Tensor, "*shape"]:
    """Sum the transitions into every real position from the previous real position."""
    num_states = transitions.shape[-1]
    before, after = labels.gather(-1, previous_real(real)), labels[..., 1:]
    if transitions.ndim == 2:
        steps = transitions[before, after]
    else:
        pairs = transitions.expand(*labels.shape[:-1], -1, -1, -1).flatten(-2)
        steps = pairs.gather(-1, (before * num_states + after).unsqueeze(-1)).squeeze(-1)
    return torch.where(linked_steps(real), steps, 0.0).sum(-1)

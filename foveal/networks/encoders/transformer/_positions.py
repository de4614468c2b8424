"""Positions of tokens for self-attention, which otherwise does not depend on their order.

    angle[t, i] = t / 10000^(i / N),   i = 0 .. N-1

    sinusoidal   x_t + [sin(angle[t]); cos(angle[t])]              Vaswani et al. 2017, section 3.5
    learned      x_t + P[t]
    rotary       features i and N + i of a query or key are rotated by angle[t, i], so that the product of a
                 query and a key depends only on their distance     Su et al. 2021

A token's position is its index among the real tokens of its text: padding before it or between does not count.

Axes: *batch any leading shape, T tokens, P positions, D width of a token's vector, H heads, d width of a
head, N pairs of features.
"""

import math
from typing import Literal, NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ....errors import ShapeError

Positions: TypeAlias = Literal["rotary", "learned", "sinusoidal"]

_LONGEST = 10_000.0  # positions per radian of the slowest pair


class Rotation(NamedTuple):
    """Factors of a row and of the row with swapped halves: [cos; cos] and [-sin; sin], for every head."""

    own: Float[Tensor, "*#batch T 1 d"]
    swapped: Float[Tensor, "*#batch T 1 d"]


def token_positions(
    num_tokens: int, mask: Bool[Tensor, "*batch T"] | None, device: torch.device
) -> Int[Tensor, "*batch T"]:
    """Return the index of each token among the real tokens of its text; without a mask, for all texts at once.

    Args:
        num_tokens: Number T of tokens, with padding.
        mask: True on real tokens; None if all are real.
        device: Device of the result.

    Returns:
        Positions from 0; the positions of padding are arbitrary numbers of this range.

    Examples:
        >>> token_positions(4, torch.tensor([[False, True, False, True]]), torch.device("cpu"))
        tensor([[0, 0, 0, 1]])
    """
    if mask is None:
        return torch.arange(num_tokens, device=device)
    return (mask.cumsum(-1) - 1).clamp(min=0)


def placed(
    vectors: Float[Tensor, "*batch T D"],
    positions: Int[Tensor, "*#batch T"],
    kind: Positions,
    learned: nn.Embedding | None,
    num_positions: int | None = None,
) -> Float[Tensor, "*batch T D"]:
    """Scale the vectors of the tokens by sqrt(D) and add their positions; rotary positions are not added.

    Args:
        vectors: Vectors of the tokens.
        positions: Position of each token.
        kind: How the order of the tokens enters.
        learned: Table of learned positions; None for any other kind.
        num_positions: Number that no position reaches; defaults to T, for a text from its first token.

    Returns:
        The input of the first layer.

    Raises:
        ShapeError: If a text is longer than the table of learned positions.
    """
    size = vectors.shape[-1]
    if learned is not None:
        _check_length(positions, learned.num_embeddings)
        vectors = vectors + learned(positions)
    # Vectors have about the variance 1 / D, and the sum that the layers add to should have 1.
    vectors = vectors * math.sqrt(size)
    if kind == "sinusoidal":
        vectors = vectors + sinusoids(positions, size, num_positions).to(vectors.dtype)
    return vectors


def learned_positions(kind: Positions, max_positions: int, size: int) -> nn.Embedding | None:
    """Return a new table of learned positions; None for any other kind.

    Args:
        kind: How the order of the tokens enters.
        max_positions: Length of the longest text.
        size: Width of a token's vector.

    Returns:
        A table with the variance of the token vectors.
    """
    if kind != "learned":
        return None
    table = nn.Embedding(max_positions, size)
    nn.init.normal_(table.weight, std=1 / math.sqrt(size))
    return table


def check_head_size(owner: str, kind: Positions, head_size: int) -> None:
    """Raise an error if rotary positions meet heads of odd width."""
    if kind == "rotary" and head_size % 2:
        raise ShapeError(
            f"{owner}: rotary positions rotate pairs of features, so the width of a head must be "
            f"even, got {head_size}. Change the width or the number of heads, or choose other positions."
        )


def sinusoids(
    positions: Int[Tensor, "*batch T"], size: int, num_positions: int | None = None
) -> Float[Tensor, "*batch T {size}"]:
    """Return a vector of sines and cosines for each position.

    Args:
        positions: Position of each token.
        size: Width of a vector.
        num_positions: Number that no position reaches; defaults to T, for a text from its first token.

    Returns:
        Vectors with entries between -1 and 1.
    """
    angles = _angles(positions, -(-size // 2), num_positions)
    return torch.cat([angles.sin(), angles.cos()], -1)[positions][..., :size]


def rotation(
    positions: Int[Tensor, "*batch T"], head_size: int, num_positions: int | None = None
) -> Rotation:
    """Return the rotation of the queries and keys at each position.

    Args:
        positions: Position of each token.
        head_size: Even width of a query.
        num_positions: Number that no position reaches; defaults to T, for a text from its first token.

    Returns:
        Factors that broadcast over heads.
    """
    angles = _angles(positions, head_size // 2, num_positions)
    cos, sin = angles.cos(), angles.sin()
    tables = torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)
    return Rotation(*(table[positions].unsqueeze(-2) for table in tables))


def rotated(rows: Float[Tensor, "*batch T H d"], by: Rotation) -> Float[Tensor, "*batch T H d"]:
    """Rotate the pairs of features of each row, in the dtype of the rows.

    Args:
        rows: Queries or keys of all heads.
        by: Rotation of each token.

    Returns:
        Rotated rows; their norms do not change.
    """
    swapped = rows.roll(rows.shape[-1] // 2, -1)
    return torch.addcmul(rows * by.own.to(rows.dtype), swapped, by.swapped.to(rows.dtype))


def _angles(
    positions: Int[Tensor, "*batch T"], num_pairs: int, num_positions: int | None
) -> Float[Tensor, "P N"]:
    """Return the angles of all positions of the longest text.

    One table for all texts: sines of the same angles are then bit-identical in every batch.
    """
    device = positions.device
    longest = positions.shape[-1] if num_positions is None else num_positions
    places = torch.arange(longest, device=device, dtype=torch.float32)
    pairs = torch.arange(num_pairs, device=device, dtype=torch.float32)
    return places.unsqueeze(-1) * _LONGEST ** (-pairs / max(1, num_pairs))


def _check_length(positions: Int[Tensor, "*batch T"], most: int) -> None:
    if positions.numel() and int(positions.max()) >= most:
        raise ShapeError(
            f"Transformer: there are {most} learned positions, got a text of {int(positions.max()) + 1} "
            f"tokens. Set max_positions higher, or choose rotary positions, which have no limit."
        )

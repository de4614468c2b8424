r"""Random distortion of pictures during training, similar to the variation between handwritings.

    pixel of the new picture = k F (pixel of the old one + waves), where k keeps the whole picture in the frame
    F = rotation . slant . stretch, about the center

The amount of distortion is also random, from none to the maximum of the spec: interpolation between pixels blurs, and a
model that is trained only on blurred pictures would not recognize sharp ones.

Reference: Simard et al. 2003, Best practices for convolutional neural networks applied to visual document analysis.

Axes: B examples, F frames, C channels, h and w height and width.
"""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate

from ...specs import setting
from ._pictures import Seen

_WAVE = 16  # pixels between two independently displaced points


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class DistortionSpec:
    """Maximum distortion of pictures. Only waves can move pixels out of the frame."""

    turn: float = setting(3.0, "maximum rotation in degrees", at_least=0, at_most=45)
    slant: float = setting(0.3, "maximum shear: columns that a row moves, per row", at_least=0)
    stretch: float = setting(0.2, "maximum relative change of width and height", at_least=0)
    shrink: float = setting(
        0.3, "maximum reduction of the size, as a fraction", at_least=0, at_most=0.9
    )
    waves: float = setting(1.5, "maximum local displacement in pixels", at_least=0)


def distorted(seen: Seen, spec: DistortionSpec) -> Seen:
    """Distort pictures randomly; all frames of a clip get the same distortion."""
    pictures, mask = seen
    flat = pictures.flatten(1, -3)
    height, width = flat.shape[-2:]
    anywhere = mask.flatten(1, -3).any(1) if mask.ndim > 3 else mask
    real = torch.stack([anywhere.any(1).sum(-1), anywhere.any(2).sum(-1)], -1)  # (B, 2): w and h
    amount = torch.rand(len(flat), device=flat.device)
    origins = _origins(real.to(flat.dtype), (height, width), spec, amount)
    waves = _waves(len(flat), (height, width), flat) * amount[:, None, None, None]
    places = origins + spec.waves * waves
    sampled = grid_sample(
        flat, (2 * places + 1) / flat.new_tensor([width, height]) - 1, align_corners=False
    )
    return Seen(sampled.view_as(pictures) * mask.unsqueeze(-3), mask)


def _origins(
    real: Float[Tensor, "B 2"],
    size: tuple[int, int],
    spec: DistortionSpec,
    amount: Float[Tensor, " B"],
) -> Float[Tensor, "B h w 2"]:
    """Return the source column and row of each pixel, before waves."""
    bend = _bend(spec, amount)
    middle = real / 2
    reach = (bend.abs() @ middle.unsqueeze(-1)).squeeze(-1)  # half size of the transformed picture
    fitting = (middle / reach).amin(-1).clamp(max=1)
    scale = fitting * (1 - spec.shrink * amount * torch.rand_like(amount))
    room = middle - scale[:, None] * reach
    shift = room * (2 * torch.rand_like(room) - 1)
    rows, columns = (torch.arange(side, device=real.device, dtype=real.dtype) for side in size)
    pixels = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), -1) + 0.5  # (h, w, 2)
    back = torch.linalg.inv(scale[:, None, None] * bend)
    moved = pixels - (middle + shift)[:, None, None]
    return torch.einsum("bij,bhwj->bhwi", back, moved) + middle[:, None, None] - 0.5


def _bend(spec: DistortionSpec, amount: Float[Tensor, " B"]) -> Float[Tensor, "B 2 2"]:
    """Return random matrices that stretch, slant and rotate."""
    turn, slant, stretch = (
        most * amount * (2 * torch.rand_like(amount) - 1)
        for most in (math.radians(spec.turn), spec.slant, math.log1p(spec.stretch))
    )
    none, one = torch.zeros_like(amount), torch.ones_like(amount)
    factors = (
        (turn.cos(), -turn.sin(), turn.sin(), turn.cos()),
        (one, slant, none, one),
        (stretch.exp(), none, none, (-stretch).exp()),
    )
    turned, slanted, stretched = (torch.stack(four, -1).unflatten(-1, (2, 2)) for four in factors)
    return turned @ slanted @ stretched


def _waves(num: int, size: tuple[int, int], like: Tensor) -> Float[Tensor, "B h w 2"]:
    """Sample normal displacements on a coarse grid and interpolate them smoothly."""
    coarse = [side // _WAVE + 2 for side in size]
    drawn = torch.randn(num, 2, *coarse, dtype=like.dtype, device=like.device)
    smooth = interpolate(drawn, size=size, mode="bicubic", align_corners=True)
    return smooth.permute(0, 2, 3, 1)

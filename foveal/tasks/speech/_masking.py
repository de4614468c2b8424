"""SpecAugment: random bands of frequencies and of time have their mean value during training.

A model that must do without some bands and moments does not rely on single cues of a speaker.

Axes: B examples, T frames, M mel bands.
Reference: Park et al. 2019, section 2 (without time warping).
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ...specs import setting
from ._spectrograms import Heard


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SpecAugmentSpec:
    """Random masks of spectrograms during training."""

    bands: int = setting(2, "number of frequency masks", at_least=0)
    max_band: int = setting(8, "maximum width of a frequency mask in mel bands", at_least=0)
    times: int = setting(2, "number of time masks", at_least=0)
    max_time: int = setting(20, "maximum width of a time mask in frames", at_least=0)


def masked(source: Heard, spec: SpecAugmentSpec) -> Heard:
    """Replace random bands and moments by the mean, which is 0; every recording has other masks."""
    frames, mask = source
    lengths = mask.sum(-1)
    sizes = torch.full_like(lengths, frames.shape[-1])
    for _ in range(spec.times):
        frames = frames.masked_fill(_span(lengths, frames.shape[1], spec.max_time)[:, :, None], 0.0)
    for _ in range(spec.bands):
        frames = frames.masked_fill(_span(sizes, frames.shape[2], spec.max_band)[:, None], 0.0)
    return Heard(frames, mask)


def _span(lengths: Int[Tensor, " B"], size: int, most: int) -> Bool[Tensor, "B size"]:
    """Return a random span of at most `most` positions within each length."""
    width = (torch.rand(len(lengths), device=lengths.device) * (most + 1)).floor()
    room = (lengths - width).clamp(min=0)
    start = (torch.rand(len(lengths), device=lengths.device) * (room + 1)).floor()
    at = torch.arange(size, device=lengths.device)
    return (at >= start[:, None]) & (at < (start + width)[:, None])

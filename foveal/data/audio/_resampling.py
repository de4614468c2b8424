r"""Resample a signal with a windowed sinc filter, for any ratio of two rates.

    y[k] = sum over n of x[n] * s sinc(s (p_k - n)) w(s (p_k - n) / Z),   p_k = k * rate / new_rate

p_k is the position of output k among the inputs, s the fraction of the band that is kept, and w a Hann window over
2 Z zero crossings. Only new_rate / gcd(rate, new_rate) phases of p_k differ, so the weights come from a table.

Axes: N input samples, K output samples, P phases, R inputs that an output depends on.
Reference: Smith 1984 (digital audio resampling).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import ValueRangeError

_ZEROS = 24  # zero crossings on each side: 70 dB below the passband
_KEPT = 0.94  # fraction of the band below the transition of the filter
_AT_ONCE = 1 << 10  # outputs, whose inputs then fit in the cache


def resample(samples: Float[Tensor, " N"], rate: int, new_rate: int) -> Float[Tensor, " K"]:
    """Resample a signal, without frequencies above half of the lower rate.

    Args:
        samples: Signal.
        rate: Samples per second of the signal.
        new_rate: Samples per second of the result.

    Returns:
        The signal at the new rate, with the same duration.

    Raises:
        ValueRangeError: A rate is less than 1.

    Examples:
        >>> tone = torch.sin(torch.arange(44_100) * (2 * torch.pi * 440 / 44_100))
        >>> resample(tone, 44_100, 8_000).shape
        torch.Size([8000])
    """
    if rate < 1 or new_rate < 1:
        raise ValueRangeError(
            f"resample: rates must be at least 1, got {rate} and {new_rate}. Pass samples per second."
        )
    if rate == new_rate or not len(samples):
        return samples
    common = math.gcd(rate, new_rate)
    down, up = rate // common, new_rate // common
    scale = min(1.0, up / down) * _KEPT
    reach = math.ceil(_ZEROS / scale)
    table = _weights(down, up, scale, reach, samples)
    num_outputs = -(-len(samples) * up // down)
    windows = torch.nn.functional.pad(samples, (reach - 1, reach)).unfold(0, 2 * reach, 1)
    parts = []
    for start in range(0, num_outputs, _AT_ONCE):
        number = torch.arange(start, min(start + _AT_ONCE, num_outputs), device=samples.device)
        near = windows[number * down // up]
        parts.append((near * table[number % up]).sum(-1))
    return torch.cat(parts)


def _weights(down: int, up: int, scale: float, reach: int, like: Tensor) -> Float[Tensor, "P R"]:
    """Return the weights of the inputs around an output, for each phase."""
    phase = torch.arange(up, dtype=torch.float64) * down % up / up
    taps = torch.arange(1 - reach, reach + 1, dtype=torch.float64)
    distance = scale * (phase[:, None] - taps)
    window = torch.cos(distance.clamp(-_ZEROS, _ZEROS) * (math.pi / (2 * _ZEROS))).square()
    return (scale * torch.sinc(distance) * window).to(like)

r"""Log-mel features: the power of a signal in frequency bands, in decibels, and an approximate inverse.

    x[t, m] = 10 log10( sum over f of F[m, f] |stft(samples)[t, f]|^2 )

The bands F are triangles whose centers are evenly spaced on the mel scale, mel(f) = 2595 log10(1 + f / 700). The inverse
solves for the power of each frequency by least squares and finds phases by the algorithm of Griffin and Lim.

Axes: N samples, T frames, M mel bands, f frequencies.
References: Davis and Mermelstein 1980 (mel scale); Griffin and Lim 1984.
"""

from functools import lru_cache

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from ...errors import ShapeError
from ._spec import AudioSpec

_LEAST_POWER = 1e-10  # -100 dB
RANGE = 80.0  # decibels between the loudest point of a spectrogram and black


def log_mel(samples: Float[Tensor, " N"], spec: AudioSpec) -> Float[Tensor, "T M"]:
    """Compute the log-mel features of a signal.

    Args:
        samples: Signal at the rate of the spec, from -1 to 1.
        spec: Rate, window, distance between frames, and number of bands.

    Returns:
        The power of each band in each frame, in decibels. Frame t is centered on sample t * hop.

    Examples:
        >>> spec = AudioSpec(rate=8_000, num_mels=40)
        >>> tone = torch.sin(torch.arange(8_000) * (2 * torch.pi * 1_000 / 8_000))
        >>> features = log_mel(tone, spec)
        >>> features.shape, features[50].argmax()       # a band around 1,000 Hz
        (torch.Size([101, 40]), tensor(18))
    """
    power = _transform(samples, spec).abs().square()
    return 10 * (power @ bands(spec).to(power).T).clamp(min=_LEAST_POWER).log10()


def invert_log_mel(
    features: Float[Tensor, "T M"], spec: AudioSpec, *, num_iterations: int = 32
) -> Float[Tensor, " N"]:
    """Estimate a signal from its log-mel features, for listening to the information that they keep.

    Args:
        features: Features from `log_mel`.
        spec: Spec of the features.
        num_iterations: Number of iterations of the search for phases.

    Returns:
        A signal with about these features. Its phases differ from those of the original.

    Raises:
        ShapeError: The features do not have `spec.num_mels` bands.
    """
    if features.shape[-1] != spec.num_mels:
        raise ShapeError(
            f"invert_log_mel: expected {spec.num_mels} bands, got {features.shape[-1]}. Pass the spec of the features."
        )
    spread = torch.linalg.pinv(bands(spec).to(features))
    size = (10 ** (features / 10) @ spread.T).clamp(min=0).sqrt()
    phases = torch.rand(size.shape, generator=torch.Generator().manual_seed(0))
    guess = torch.polar(size, phases.to(size) * (2 * torch.pi))
    for _ in range(num_iterations):
        again = _transform(_signal(guess, spec), spec)[: len(size)]
        guess = size * again / again.abs().clamp(min=1e-8)
    return _signal(guess, spec)


def spectrogram(samples: Float[Tensor, " N"], spec: AudioSpec) -> UInt8[Tensor, "1 M T"]:
    """Return log-mel features as a gray picture, with high frequencies at the top. The brightness depends only on the
    distance from the loudest point, so a louder recording has the same picture.
    """
    features = log_mel(samples, spec)
    levels = (features - features.max()).div(RANGE).add(1).clamp(0, 1)
    return levels.mul(255).round().to(torch.uint8).T.flip(0)[None].contiguous()


def _transform(samples: Float[Tensor, " N"], spec: AudioSpec) -> Tensor:
    """Return the short-time Fourier transform, (T, f)."""
    found = torch.stft(
        samples,
        spec.num_points,
        hop_length=spec.hop,
        win_length=spec.window,
        window=torch.hann_window(spec.window).to(samples),
        pad_mode="constant",
        return_complex=True,
    )
    return found.T


def _signal(transformed: Tensor, spec: AudioSpec) -> Float[Tensor, " N"]:
    return torch.istft(
        transformed.T,
        spec.num_points,
        hop_length=spec.hop,
        win_length=spec.window,
        window=torch.hann_window(spec.window).to(transformed.real),
    )


@lru_cache(maxsize=8)
def bands(spec: AudioSpec) -> Float[Tensor, "M f"]:
    """Return the weight of each frequency in each mel band: triangles that overlap by half."""
    most = 2595 * torch.tensor(1 + spec.rate / 2 / 700, dtype=torch.float64).log10()
    edges = 700 * (10 ** (torch.linspace(0, 1, spec.num_mels + 2).double() * most / 2595) - 1)
    frequencies = torch.linspace(0, spec.rate / 2, spec.num_points // 2 + 1).double()
    low, middle, high = (edges[n : n + spec.num_mels, None] for n in range(3))
    rising, falling = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    return torch.minimum(rising, falling).clamp(min=0).float()

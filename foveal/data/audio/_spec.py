"""The settings for reading recordings."""

from dataclasses import dataclass
from typing import final

from ...specs import setting


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class AudioSpec:
    """Settings for reading recordings and computing their log-mel features."""

    rate: int = setting(
        16_000,
        "samples per second that recordings are resampled to",
        at_least=1_000,
        at_most=48_000,
    )
    num_mels: int = setting(80, "number of frequency bands", at_least=1, at_most=256)
    window_seconds: float = setting(
        0.025, "duration of the window of a frame in seconds", above=0, at_most=1
    )
    hop_seconds: float = setting(0.01, "time between frames in seconds", at_least=0.001, at_most=1)
    max_seconds: float = setting(
        60.0, "maximum duration in seconds; a longer recording is an error", above=0
    )
    max_bytes: int = setting(
        1 << 25, "maximum file size in bytes; a larger file is an error", at_least=1
    )

    @property
    def window(self) -> int:
        """Return the number of samples in the window of a frame."""
        return max(2, round(self.window_seconds * self.rate))

    @property
    def hop(self) -> int:
        """Return the number of samples between frames."""
        return max(1, round(self.hop_seconds * self.rate))

    @property
    def num_points(self) -> int:
        """Return the number of points of the Fourier transform: the next power of 2."""
        return 1 << (self.window - 1).bit_length()

"""Recordings as task inputs: from files to padded frames of log-mel features.

A recording is stored as a gray picture, one byte for each frame and band, like the images of other tasks. Predictions must
not depend on the rest of the batch (docs/decisions/0012), so a recording is padded by its length only.

Axes: B examples, T frames, M mel bands, S positions of the memory.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, final

from jaxtyping import Bool, Float, UInt8
from torch import Tensor
from torch.nn.functional import pad

from ...attention import Layout
from ...data import Audio, AudioSpec, Example, read_audio
from ...data.audio._log_mel import spectrogram
from ...data.images._pictures import collate_images
from ..base._size_classes import size_class
from ..pictures._picture_cache import PictureCache

# The standard deviation of a silent band, as a fraction of the range of the stored bytes. Loud bands have about 0.25.
LEAST_DEVIATION = 0.02


class Heard(NamedTuple):
    """Frames as model input, normalized for each recording and band, with a mask that is True on real frames."""

    frames: Float[Tensor, "B T M"]
    mask: Bool[Tensor, "B T"]


@final
class Spectrograms:
    """Reads recordings for a task, pads them, and labels the positions of the memory; `step` frames are one position."""

    def __init__(self, spec: AudioSpec, step: int) -> None:
        self.spec, self.step, self._cache = spec, step, PictureCache()

    def input(self, example: Example) -> Audio:
        """Return the source of an example as a recording."""
        return example.input_as(Audio)

    def read(self, source: Audio) -> UInt8[Tensor, "1 M T"]:
        """Return the spectrogram of a recording, padded to whole positions; files are cached."""
        decoded = partial(self._decoded, source)
        if isinstance(source.file, bytes):
            return decoded()
        return self._cache.get(source.file, decoded)

    def _decoded(self, source: Audio) -> UInt8[Tensor, "1 M T"]:
        found = spectrogram(read_audio(source.file, self.spec), self.spec)
        return pad(found, (0, -found.shape[-1] % self.step))

    def seen(self, pictures: Sequence[UInt8[Tensor, "_ _ _"]]) -> Heard:
        """Collate recordings of any lengths into one batch."""
        return heard(*collate_images(pictures))

    def settled(self, pictures: Sequence[UInt8[Tensor, "_ _ _"]]) -> Heard:
        """Collate recordings of one size class, padded to its size."""
        found, (size,) = self.seen(pictures), self.padded(pictures[0])
        missing = size - found.mask.shape[-1]
        return Heard(pad(found.frames, (0, 0, 0, missing)), pad(found.mask, (0, missing)))

    def padded(self, picture: UInt8[Tensor, "1 M T"]) -> tuple[int]:
        """Return the number of frames of a padded recording."""
        return (self.step * size_class(self.num_places(picture)),)

    def num_places(self, picture: UInt8[Tensor, "1 M T"]) -> int:
        """Return the number of positions of a recording."""
        return picture.shape[-1] // self.step

    def places(self, mask: Bool[Tensor, "B T"]) -> Bool[Tensor, "B S"]:
        """Return a mask of the real positions of the memory."""
        return mask[:, :: self.step]

    @property
    def seconds(self) -> float:
        """Return the duration of a position."""
        return self.step * self.spec.hop / self.spec.rate

    def layout(self, picture: UInt8[Tensor, "1 M T"]) -> Layout:
        """Return one row of positions, which divides the spectrogram evenly."""
        return Layout("grid", 1, self.num_places(picture))

    def names(self, picture: UInt8[Tensor, "1 M T"]) -> tuple[str, ...]:
        """Return the time at which each position starts."""
        return tuple(f"{n * self.seconds:.2f} s" for n in range(self.num_places(picture)))


def heard(pictures: Float[Tensor, "B 1 M T"], mask: Bool[Tensor, "B M T"]) -> Heard:
    """Turn spectrograms into frames, low frequencies first, with mean 0 and variance 1 over each recording and band.

    The loudness and the microphone then matter less.
    """
    mask = mask[:, 0]
    frames = pictures[:, 0].flip(1).transpose(1, 2)
    # Stored values are whole numbers, so sums in float64 are exact, and padding cannot change them.
    stored = (frames.double() * 255).round().masked_fill(~mask[:, :, None], 0.0)
    size = mask.sum(1)[:, None, None].clamp(min=1)
    mean = stored.sum(1, keepdim=True) / size
    variance = (stored.square().sum(1, keepdim=True) / size - mean.square()).clamp(min=0)
    deviation = variance.sqrt().clamp(min=255 * LEAST_DEVIATION)
    normal = ((stored - mean) / deviation).to(frames.dtype)
    return Heard(normal.masked_fill(~mask[:, :, None], 0.0), mask)

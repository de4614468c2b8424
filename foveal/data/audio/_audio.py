"""Read recordings as samples, with limits, because a recording may come from an untrusted source (extra `audio`).

    bytes -> format, from the first bytes -> duration, from the header -> samples -> one channel,
    resampled

A recording is decoded only if its header shows an acceptable rate and duration, and then in blocks. Every error of the
decoder becomes a one-line message about the file.

Axes: N samples, C channels.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import DataError
from ...extras import required
from ..images._bytes import AUDIO, media_bytes
from ._resampling import resample
from ._spec import AudioSpec

# The first bytes determine the format of a file, not its name: bytes 0 to 4, and 8 to 12 if given.
_FORMATS = ((b"RIFF", b"WAVE"), (b"fLaC", b""), (b"OggS", b""))
_FOREIGN = {
    b"ID3": "MP3",
    b"\xff\xfb": "MP3",
    b"FORM": "AIFF",
    b"RF64": "WAV of more than 4 GB",
    b"PK\x03\x04": "a zip archive",
    b"version https://git-lfs": "a Git LFS pointer to a recording that was not downloaded",
}
SUFFIXES = (".wav", ".flac", ".ogg")  # extensions of recordings
_LEAST_RATE, _MOST_RATE = 1_000, 192_000
_MOST_CHANNELS = 32
# Integer samples are from -1 to 1. Files with float samples may use other units, such as those of 16-bit integers.
_LOUDEST = 2.0**16
_BLOCK = 1 << 16  # samples of each channel
_UNKNOWN_SIZE = 0xFFFF_FFFF  # of a WAV that was written to a pipe


def read_audio(source: Path | bytes, spec: AudioSpec) -> Float[Tensor, " N"]:
    """Read a recording as samples of one channel, the mean of all channels, at the rate of the spec.

    Args:
        source: A WAV, FLAC or Ogg file, a member of a zip archive (`speech.zip/one.wav`), or the content of a file.
        spec: The rate and the limits.

    Returns:
        The samples; those of integer formats are from -1 to 1.

    Raises:
        AudioError: The file is not a recording, has an unsupported format, is damaged, too long, or contains samples
            that are not finite.
    """
    place = source if isinstance(source, Path) else "the recording"
    data = media_bytes(source, spec.max_bytes, AUDIO)
    _check_format(data, place)
    if data.startswith(b"RIFF"):
        _check_chunks(data, place)
    package = required("audio", "soundfile", needed_by=f"{place}: a recording")
    try:
        with package.SoundFile(BytesIO(data)) as opened:
            _check_header(opened, place, spec)
            rate, expected = opened.samplerate, opened.frames
            samples = np.concatenate(list(_blocks(opened)))
    except DataError:
        raise
    except Exception as error:  # a decoder may raise anything for unexpected bytes
        raise _damaged(" ".join(str(error).split())[:120] or type(error).__name__, place) from None
    if len(samples) < expected:
        raise _damaged(f"{len(samples):,} of {expected:,} samples", place)
    largest = float(np.abs(samples).max())
    if not largest <= _LOUDEST:  # also NaN
        raise AUDIO.refusal(
            place,
            f"samples up to {largest:g}, expected finite samples of at most {_LOUDEST:g}",
            "Save it with integer samples",
        )
    return resample(torch.from_numpy(samples), rate, spec.rate)


def _blocks(opened: Any) -> Iterator[Float[np.ndarray, " n"]]:
    """Yield the mean of all channels, in blocks, so that many channels take no more memory than one."""
    left = opened.frames
    while left > 0:
        block = opened.read(min(_BLOCK, left), dtype="float32", always_2d=True)
        if not len(block):
            break
        yield block.mean(1)
        left -= len(block)


def _check_format(data: bytes, place: object) -> None:
    if any(data.startswith(first) and second in data[8:12] for first, second in _FORMATS):
        return
    kind = next((kind for first, kind in _FOREIGN.items() if data.startswith(first)), None)
    got = (
        "empty" if not data else kind or f"in an unknown format, beginning with {data[:8].hex(' ')}"
    )
    raise AUDIO.refusal(place, f"the file is {got}, expected WAV, FLAC or Ogg")


def _check_chunks(data: bytes, place: object) -> None:
    """Raise an error for a WAV whose samples are cut off, which the decoder would accept."""
    at = 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name == b"data":
            has = len(data) - at - 8
            if size > has and size != _UNKNOWN_SIZE:
                raise _damaged(f"{has:,} of {size:,} bytes of samples", place)
            return
        at += 8 + size + size % 2
    raise _damaged("no samples", place)


def _check_header(opened: Any, place: object, spec: AudioSpec) -> None:
    """Raise an error for a header whose samples should not be decoded."""
    rate, channels, frames = opened.samplerate, opened.channels, opened.frames
    if not _LEAST_RATE <= rate <= _MOST_RATE or channels > _MOST_CHANNELS:
        raise AUDIO.refusal(
            place,
            f"{rate:,} samples per second and {channels} channels, expected from {_LEAST_RATE:,} to {_MOST_RATE:,} "
            f"samples and at most {_MOST_CHANNELS} channels",
            "Resample it",
        )
    if frames < 1:
        raise AUDIO.refusal(
            place, "no samples, expected a recording", "Record it again, or remove it"
        )
    if frames > spec.max_seconds * rate:
        raise AUDIO.refusal(
            place,
            f"{frames / rate:,.1f} seconds, expected at most {spec.max_seconds:g}",
            "Cut it into pieces, or increase max_seconds",
        )


def _damaged(what: str, place: object) -> DataError:
    return AUDIO.refusal(
        place, f"the recording is damaged ({what})", "Download it again, or remove it"
    )

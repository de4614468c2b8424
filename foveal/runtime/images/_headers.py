"""Parse image sizes from headers, for formats whose decoders allocate memory before the size can be checked.

    GIF     each frame may be larger than the screen, which the decoder then enlarges
    WebP    the decoder allocates the canvas twice on construction

The other decoders read only the header on construction.
"""

from struct import unpack_from
from typing import NamedTuple

_IMAGE, _EXTENSION, _END = 0x2C, 0x21, 0x3B  # first bytes of the blocks of a GIF
_CONTROL = b"\xf9\x04"  # an extension with the duration of the next frame


class Outline(NamedTuple):
    """The size of an image and the durations of its frames, from its headers."""

    width: int
    height: int
    times: tuple[int, ...] = (0,)  # in hundredths of a second


def webp_outline(data: bytes) -> Outline:
    """Parse the first chunk of a WebP; the outline is empty if the type of the chunk is unknown."""
    kind = data[12:16]
    if len(data) < 30:
        return Outline(0, 0)
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return Outline(width, height)
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return Outline((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        width, height = unpack_from("<HH", data, 26)
        return Outline(width & 0x3FFF, height & 0x3FFF)
    return Outline(0, 0)


def gif_outline(data: bytes) -> Outline:
    """Parse the frames of a GIF, and the size of the screen that contains all frames. Parsing stops at the first
    invalid block.
    """
    if len(data) < 13:
        return Outline(0, 0)
    width, height, flags = unpack_from("<HHB", data, 6)
    at, times, time = 13 + _palette_size(flags), list[int](), 0
    while at < len(data) and data[at] != _END:
        if data[at] == _EXTENSION:
            if data[at + 1 : at + 3] == _CONTROL and at + 5 < len(data):
                (time,) = unpack_from("<H", data, at + 4)
            at = _after_blocks(data, at + 2)
        elif data[at] == _IMAGE and at + 10 < len(data):
            left, top, across, down, flags = unpack_from("<HHHHB", data, at + 1)
            width, height = max(width, left + across), max(height, top + down)
            times.append(time)
            time = 0
            at = _after_blocks(data, at + 11 + _palette_size(flags))
        else:
            at += 1  # skip unknown blocks, as the decoder does
    return Outline(width, height, tuple(times) or (0,))


def _palette_size(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_blocks(data: bytes, at: int) -> int:
    """Return the end of a chain of blocks; each block starts with its length, and the last block is empty."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1

"""What headers say of sizes, where a decoder would reserve memory by them before anybody can look.

    GIF     each frame may be larger than the screen, which the decoder then enlarges
    WebP    the decoder reserves the canvas twice when it is made

The other decoders read no more than the header when they are made.
"""

from struct import unpack_from
from typing import NamedTuple

_IMAGE, _EXTENSION, _END = 0x2C, 0x21, 0x3B  # what a block of a GIF begins with
_CONTROL = b"\xf9\x04"  # of an extension that says how long the next frame is shown


class Outline(NamedTuple):
    """The size of a picture, and how long each of its frames is shown, by its headers."""

    width: int
    height: int
    times: tuple[int, ...] = (0,)  # in hundredths of a second


def webp_outline(data: bytes) -> Outline:
    """Of a WebP: what its first chunk says, which is nothing where that is of no known kind."""
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
    """Of a GIF: its frames, and its screen as large as the frames make it. What comes after a fault is
    not counted.
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
            at += 1  # the decoder passes over what it does not know, and so do we
    return Outline(width, height, tuple(times) or (0,))


def _palette_size(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_blocks(data: bytes, at: int) -> int:
    """Where a chain of blocks ends, each of which says how long it is, the last that it is empty."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1

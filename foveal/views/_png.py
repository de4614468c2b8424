"""Pixels as PNG, for pictures inside an SVG: 8 bits, gray or RGB, written with zlib alone.

Reference: Portable Network Graphics, W3C 2003: signature, IHDR, IDAT, IEND.
"""

import base64
import struct
import zlib

import numpy as np
from jaxtyping import UInt8

COLOR_TYPES = {1: 0, 3: 2}  # channels -> gray, RGB


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png(pixels: UInt8[np.ndarray, "h w c"]) -> bytes:
    """A PNG file of one (gray) or three (RGB) channels."""
    height, width, num_channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPES[num_channels], 0, 0, 0)
    flat = pixels.reshape(height, width * num_channels)
    # Filter 1: each byte as its difference from the pixel to the left, which packs better.
    before = np.zeros_like(flat)
    before[:, num_channels:] = flat[:, :-num_channels]
    lines = np.concatenate([np.ones((height, 1), np.uint8), flat - before], axis=1)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def data_uri(pixels: UInt8[np.ndarray, "h w c"]) -> str:
    """The PNG as an address that holds it, for `href`."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def shrunk(pixels: UInt8[np.ndarray, "h w c"], longest: int) -> UInt8[np.ndarray, "H W c"]:
    """The image with neither side over `longest`: means over blocks of pixels."""
    block = -(-max(pixels.shape[:2]) // longest)
    if block == 1:
        return pixels
    rows, columns = (range(0, size, block) for size in pixels.shape[:2])
    sums = np.add.reduceat(np.add.reduceat(pixels.astype(np.float64), rows, 0), columns, 1)
    counts = np.outer(
        *(
            np.diff([*starts, size])
            for starts, size in zip((rows, columns), pixels.shape, strict=False)
        )
    )
    return np.round(sums / counts[..., None]).astype(np.uint8)

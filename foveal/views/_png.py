"""PNG encoding, for images inside an SVG."""

import base64
import io

import numpy as np
from jaxtyping import UInt8
from PIL import Image


def png(pixels: UInt8[np.ndarray, "h w c"]) -> bytes:
    """Encode pixels as a PNG file with one (gray) or three (RGB) channels."""
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(
        file, "PNG", optimize=True
    )
    return file.getvalue()


def data_uri(pixels: UInt8[np.ndarray, "h w c"]) -> str:
    """Return the PNG as a data URI, for `href`."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def shrunk(pixels: UInt8[np.ndarray, "h w c"], longest: int) -> UInt8[np.ndarray, "H W c"]:
    """Downscale an image by block means until neither side exceeds `longest`."""
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

"""Write pictures: images in an archive, lists of names and texts, and a manifest.

OUT/images.zip      train/0.png, train/1.png ...
OUT/train.tsv       train/0.png <tab> text
OUT/train.up_to_10.tsv      texts of at most 10 tokens: a step of a curriculum
OUT/train.boxes.jsonl       for each word of a text, the boxes of the objects that it names
OUT/manifest.json   kind, settings, seed, counts, and a digest of pixels and texts
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import PIL
from jaxtyping import UInt8
from PIL import Image
from rich.progress import track

VERSION = 1  # version of the drawings; another version has other images
FRAME_MS = 100  # duration of a frame of a clip
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # time stamp in archives, which makes them reproducible


@dataclass(frozen=True, eq=False, slots=True)
class Item:
    """A picture, (h, w), (h, w, 3) or for a clip (F, h, w, 3), and its text."""

    picture: UInt8[np.ndarray, "*F h w"] | UInt8[np.ndarray, "*F h w 3"]
    text: str
    size: int = 0  # tokens
    label: str | None = None
    boxes: Sequence[Sequence[tuple[int, int, int, int]]] | None = None  # for each word

    @property
    def is_clip(self) -> bool:
        """Return whether the picture is a clip."""
        return self.picture.ndim == 4


def write_pictures(
    out: Path,
    parts: Mapping[str, tuple[Iterator[Item], int]],
    about: Mapping[str, Any],
    *,
    sizes: Sequence[int] = (),
) -> dict[str, Any]:
    """Write the items of each part, and return the content of the manifest.

    Args:
        out: the folder to create.
        parts: for each part its stream of items, and the number of items to take.
        about: the description of the pictures for the manifest.
        sizes: maximum numbers of tokens; each gets a separate list of items.
    """
    out.mkdir(parents=True, exist_ok=True)
    digests: dict[str, str] = {}
    unfinished = out / "images.zip.part"
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        for part, (items, count) in parts.items():
            digests[part] = _write_part(out, part, islice(items, count), count, archive, sizes)
    unfinished.replace(out / "images.zip")
    manifest = {
        **about,
        "version": VERSION,
        "counts": {part: count for part, (_, count) in parts.items()},
        "digests": digests,
        "drawn_with": {
            "matplotlib": mpl.__version__,
            "numpy": np.__version__,
            "pillow": PIL.__version__,
        },
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (out / "manifest.json").write_text(text, encoding="utf-8")
    return manifest


def _write_part(
    out: Path,
    part: str,
    items: Iterator[Item],
    count: int,
    archive: zipfile.ZipFile,
    sizes: Sequence[int],
) -> str:
    """Write the images and lists of one part, and return a digest of them."""
    digest = hashlib.sha256()
    with ExitStack() as stack:

        def listed(name: str) -> Any:
            path = out / f"{part}.{name}"
            return stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))

        texts, short = listed("tsv"), {size: listed(f"up_to_{size}.tsv") for size in sizes}
        labels = boxes = None
        for number, item in enumerate(track(items, description=part, total=count)):
            name = f"{part}/{number}.{'gif' if item.is_clip else 'png'}"
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), _file(item))
            texts.write(f"{name}\t{item.text}\n")
            for size, handle in short.items():
                if item.size <= size:
                    handle.write(f"{name}\t{item.text}\n")
            if item.label is not None:
                labels = labels or listed("labels.tsv")
                labels.write(f"{name}\t{item.label}\n")
            if item.boxes is not None:
                boxes = boxes or listed("boxes.jsonl")
                record = {"image": name, "words": item.text.split(), "boxes": item.boxes}
                boxes.write(json.dumps(record) + "\n")
            digest.update(repr(item.picture.shape).encode() + item.picture.tobytes())
            digest.update(item.text.encode())
    return digest.hexdigest()


def _file(item: Item) -> bytes:
    """Return a PNG, or for a clip a GIF with unchanged colors."""
    buffer = BytesIO()
    if not item.is_clip:
        Image.fromarray(item.picture).save(buffer, "PNG")
        return buffer.getvalue()
    # A clip has few colors, so all its frames share one palette.
    packed = item.picture.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    colors, numbers = np.unique(packed, return_inverse=True)
    palette = np.stack([colors >> 16, colors >> 8 & 255, colors & 255], axis=1)
    frames = [Image.fromarray(frame) for frame in numbers.reshape(packed.shape).astype(np.uint8)]
    for frame in frames:
        frame.putpalette(palette.astype(np.uint8).tobytes())
    frames[0].save(
        buffer,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=FRAME_MS,
        loop=0,
        disposal=1,
    )
    return buffer.getvalue()

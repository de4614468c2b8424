"""Attention traces of an experiment for the docs, each with a caption, in results/shown/.

`scripts/docs_shown.py` renders them.
"""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from foveal.attention import AttentionTrace

DIGITS = 4


class Shown(NamedTuple):
    """A trace, its caption, and the image that it reads, if it reads one."""

    caption: str
    trace: AttentionTrace
    image: UInt8[np.ndarray, "h w 3"] | None = None


def save_shown(results: Path, name: str, case: str, shown: Sequence[Shown]) -> None:
    """Write the traces of a case; the file keeps its other cases."""
    traces = [
        {"caption": one.caption, "trace": _data(one.trace)}
        | ({} if one.image is None else {"image": _png(one.image)})
        for one in shown
    ]
    save_entries(results / f"shown/{name}.json", {case: traces})


def save_entries(path: Path, entries: Mapping[str, object]) -> None:
    """Write the entries of some cases into a JSON file; the file keeps its other entries."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**found, **entries}, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _png(image: UInt8[np.ndarray, "h w 3"]) -> str:
    """Encode an image for JSON."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def _data(trace: AttentionTrace) -> dict[str, object]:
    """Convert a trace to plain data, with enough digits to draw it."""
    data = json.loads(trace.to_json())
    data["weights"] = [[round(weight, DIGITS) for weight in row] for row in data["weights"]]
    return data

"""Draw traces of the models of an experiment from results/shown/<experiment>.json.

`python -m benchmarks.lectures score <experiment>` writes the files.
"""

import base64
import html
import io
import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from foveal.attention import AttentionTrace
from foveal.views._drawing import drawing

SHOWN = Path(__file__).resolve().parent.parent / "results/shown"


class Picture(NamedTuple):
    """A trace with the name of its file, its caption, and the image that it reads, if it reads one."""

    name: str
    caption: str
    trace: AttentionTrace
    image: np.ndarray | None


def shown(experiment: str, case: str, pictures: str) -> str:
    """Every picture of a case below what it is of; `pictures` is the folder's address."""
    parts, before = list[str](), ""
    for picture in _pictures(experiment, case):
        if picture.caption != before:
            parts.append(f"<p>{html.escape(picture.caption)}</p>")
        parts.append(f"![{picture.trace.kind} attention]({pictures}/{picture.name}.svg)")
        before = picture.caption
    return "\n\n".join(parts)


def shown_drawings() -> dict[str, Callable[[], str]]:
    """All drawings by name."""
    found = dict[str, Callable[[], str]]()
    for path in sorted(SHOWN.glob("*.json")):
        for case in _read(path.stem):
            for picture in _pictures(path.stem, case):
                found[picture.name] = partial(drawing, picture.trace, image=picture.image)
    return found


def _pictures(experiment: str, case: str) -> Iterator[Picture]:
    for number, one in enumerate(_read(experiment)[case], start=1):
        trace = AttentionTrace.from_json(json.dumps(one["trace"]))
        image = None
        if "image" in one:
            image = np.asarray(Image.open(io.BytesIO(base64.b64decode(one["image"]))))
        yield Picture(f"shown_{experiment}_{case}_{number}", one["caption"], trace, image)


@cache
def _read(experiment: str) -> dict[str, list[dict[str, Any]]]:
    return json.loads((SHOWN / f"{experiment}.json").read_text(encoding="utf-8"))

"""Shared helpers of the view tests: small inputs for every view, and a parser of drawings."""

import base64
import io
import re
from collections.abc import Callable, Sequence
from xml.etree import ElementTree as ET

import numpy as np
from PIL import Image

from foveal.attention import AttentionTrace, Layout
from foveal.views import (
    ParallelAxis,
    ParallelLine,
    Series,
    arcs,
    beam_tree,
    chain,
    colored_text,
    curves,
    heatmap,
    overlay,
    parallel,
    sentences,
)
from foveal.views._beam import Hypothesis

SVG = "{http://www.w3.org/2000/svg}"
ISOLATES = re.compile("[\u2068\u2069]")

ENGLISH = ("the", "old", "cat", "sat", "on", "my", "mat")
ARABIC = ("جلست", "القطة", "القديمة", "على", "سجادتي", "اليوم")
JAPANESE = ("古い", "猫", "が", "私", "の", "マット", "に", "座った", "。")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]>",
    "&amp;",
    "{{ 7 * 7 }}",
    " ",
    "",
    "\n",
    "\x00",
    "\ud800",
    "\ufffe",
    "\u0301",
    "e" + 40 * "\u0301",
    "\u202eabc",
    "👨‍👩‍👧",
    "x" * 5000,
)


def softmax(scores: np.ndarray) -> tuple[tuple[float, ...], ...]:
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e9))
    return tuple(map(tuple, (powers / powers.sum(-1, keepdims=True)).tolist()))


def random_weights(queries: int, places: int, seed: int = 0) -> tuple[tuple[float, ...], ...]:
    return softmax(2 * np.random.default_rng(seed).normal(size=(queries, places)))


def trace(
    sources: Sequence[str],
    targets: Sequence[str],
    kind: str = "softmax",
    layout: Layout | None = None,
) -> AttentionTrace:
    return AttentionTrace(
        kind=kind,
        sources=tuple(sources),
        targets=tuple(targets),
        weights=random_weights(len(targets), len(sources)),
        layout=layout or Layout(),
    )


def tree_trace(words: Sequence[str]) -> AttentionTrace:
    """In the best tree, the head of each word is the previous word; the first word is the root."""
    rows = [
        tuple(0.5 if head == word - 1 else 0.3 / len(words) for head in range(len(words)))
        for word in range(len(words))
    ]
    best = tuple(
        tuple(head == word - 1 for head in range(len(words))) for word in range(len(words))
    )
    return AttentionTrace(
        kind="syntactic", sources=tuple(words), targets=tuple(words), weights=tuple(rows), best=best
    )


def _beam(tokens: Sequence[str]) -> str:
    logs = (-0.5,) * len(tokens)
    return beam_tree(
        [
            Hypothesis(tokens=tuple(tokens), log_probs=logs, score=-1.0),
            Hypothesis(tokens=tuple(tokens)[:2], log_probs=logs[:2], score=-2.0, finished=False),
        ]
    )


def _curves(tokens: Sequence[str]) -> str:
    points = tuple((step, 1.0 / (step + 1)) for step in range(5))
    series = [Series(name=token, points=points) for token in tokens[:8]]
    return curves(series, title="".join(tokens)[:40], y_label="".join(tokens)[:40])


# Every view as a function of its tokens, which may be arbitrary text.
def _parallel(tokens: Sequence[str]) -> str:
    axes = [ParallelAxis(name=token, ticks=((0.0, token), (1.0, "1"))) for token in tokens]
    places = tuple(index / len(tokens) if index % 3 else None for index in range(len(tokens)))
    lines = [
        ParallelLine(name=tokens[0], places=places, values=tuple(tokens), group=group)
        for group in (0, 1)
    ]
    return parallel(axes, lines, title="Settings", groups=(tokens[0], "others"))


VIEWS: dict[str, Callable[[Sequence[str]], str]] = {
    "heatmap": lambda tokens: heatmap(trace(tokens, tokens[:5])),
    "segments": lambda tokens: heatmap(tree_trace(tokens)),
    "arcs": lambda tokens: arcs(tree_trace(tokens)),
    "chain": lambda tokens: chain(trace(tokens, tokens[:3], "k-step", Layout("facts"))),
    "sentences": lambda tokens: sentences(
        trace(tokens, tokens[:2], "hierarchical", Layout("sentences", 1, len(tokens)))
    ),
    "overlay": lambda tokens: overlay(
        trace([str(cell) for cell in range(6)], tokens, "spatial", Layout("grid", 2, 3)),
        np.linspace(0, 1, 24).reshape(4, 6),
    ),
    "colored_text": lambda tokens: colored_text(
        tokens, [(-1) ** place * 0.5 for place in range(len(tokens))], title="".join(tokens)[:40]
    ),
    "beam_tree": _beam,
    "curves": _curves,
    "parallel": _parallel,
}


def parsed(drawing: str) -> ET.Element:
    return ET.fromstring(drawing)


def titles(drawing: str) -> list[str]:
    """Return the hover texts of all marks, without the title of the drawing."""
    found = [element.text or "" for element in parsed(drawing).iter(f"{SVG}title")]
    return [ISOLATES.sub("", text) for text in found[1:]]


def value(text: str) -> float:
    """Return the number at the end of a hover text."""
    said = text.rpartition(": ")[2]
    return 0.0 if said.startswith("<") else float(said)


def elements(drawing: str, name: str, class_name: str) -> list[ET.Element]:
    return [
        element
        for element in parsed(drawing).iter(SVG + name)
        if class_name in element.get("class", "").split()
    ]


def pixels(address: str) -> np.ndarray:
    """Decode a PNG of a drawing; Pillow verifies every checksum."""
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"), validate=True)
    with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
        assert image.mode in ("L", "RGB")
        found = np.asarray(image)
    return found[..., None] if found.ndim == 2 else found

"""Pictures of units and gates of a language model over a text, drawn when the docs are built: name -> SVG.

`python -m benchmarks.lectures score shakespeare_units` writes the values.
"""

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from docs_captions import Caption

from foveal.views import colored_text

FILE = Path(__file__).resolve().parent.parent / "results/units/shakespeare.json"


@cache
def _stored() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def unit(name: str) -> str:
    """Draw the stored line with the values of one unit."""
    stored = _stored()
    chosen = stored["units"][name]
    title = f"decoder, {chosen['part']}, unit {chosen['unit']}"
    top = max(1.0, *map(abs, chosen["values"]))
    return colored_text(stored["tokens"], chosen["values"], title=title, top=round(top, 1))


UNITS: dict[str, Callable[[], str]] = {
    f"unit_{name}": partial(unit, name) for name in ("line", "word", "gate")
}


def unit_captions() -> dict[str, Caption]:
    """The captions of the drawings; their figures come from the stored file."""
    stored = _stored()
    chosen = {name: one["figure"] for name, one in stored["units"].items()}
    model = f"A language model with a perplexity of {stored['perplexity']:.1f} per character on new lines."
    return {
        "unit_line": Caption(
            f"{model} The memory that follows the position in the line: correlation {chosen['line']:.2f}.",
            "A line of Shakespeare, colored by the value of a memory that changes along the line",
        ),
        "unit_word": Caption(
            f"The memory that follows the number of letters since the last space: correlation {chosen['word']:.2f}.",
            "The same line, colored by a memory that starts again at each word",
        ),
        "unit_gate": Caption(
            f"The forget gate that tells spaces from letters: its mean after a space minus its mean after a letter is "
            f"{chosen['gate']:.2f}.",
            "The same line, colored by a gate that differs at spaces",
        ),
    }

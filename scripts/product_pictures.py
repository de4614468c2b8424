"""Make the pictures of the product in docs/assets/product.

    python scripts/product_pictures.py             make the outdated pictures again; screenshots need chromium
    python scripts/product_pictures.py --all       make all of them
    python scripts/product_pictures.py --check     exit with 1 if one of them is outdated; needs no browser

Drawings are SVG files. Pages are screenshots of the small models in results/product, which scripts/product_models.py
trains; results/product/pages contains a record of what each page shows. A picture is outdated if the drawing or the record
that the code makes now differs from the stored one, except for differences in numbers that another processor causes.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]
from docs_views import VIEWS  # noqa: E402
from product_architecture import architecture  # noqa: E402
from product_pages import (  # noqa: E402
    MODELS,
    NUMBER,
    PLACE,
    PRONUNCIATION,
    STEP,
    WORD,
    explanation,
    explorer_record,
    page_record,
    written_page,
)
from product_screenshots import screenshot_explorer, screenshot_page  # noqa: E402
from product_speed import speed  # noqa: E402

from foveal.views import beam_tree  # noqa: E402

OUT = ROOT / "docs/assets/product"
RECORDS = MODELS / "pages"
# A difference of 1e-6 in a probability may change the last of two digits.
TOLERANCE = 0.02

DRAWINGS: Mapping[str, Callable[[], str]] = {
    "architecture": architecture,
    "speed": speed,
    "overlay": VIEWS["view_overlay"],
    "beam_tree": lambda: beam_tree(explanation().hypotheses, title=f"Pronunciations of {WORD!r}"),
}


class Part(NamedTuple):
    """The part of a page in its picture: the width of the page, and the element that the picture ends before."""

    width: int
    before: str


PAGES = {
    "explain": Part(820, "#section-4"),
    "report": Part(960, "#section-3"),
    "doctor": Part(820, "#section-3"),
}
COMMAND = "python scripts/product_pictures.py"


def is_same(stored: str, made: str) -> bool:
    """Return whether two texts differ at most in their numbers, and in these by rounding.

    Examples:
        >>> is_same("confidence 0.46", "confidence 0.47"), is_same("confidence 0.46", "score 0.46")
        (True, False)
    """
    if stored == made:
        return True
    if NUMBER.sub("0", stored) != NUMBER.sub("0", made):
        return False
    pairs = zip(map(float, NUMBER.findall(stored)), map(float, NUMBER.findall(made)), strict=True)
    return all(abs(old - new) <= TOLERANCE * max(1.0, abs(old)) for old, new in pairs)


def records() -> Mapping[str, Callable[[], str]]:
    """Return the function that makes the record of each page."""
    pages = {name: lambda name=name: page_record(written_page(name)) for name in PAGES}
    return pages | {"explorer": explorer_record}


def is_outdated(path: Path, made: str) -> bool:
    """Return whether a stored drawing or record is missing or differs."""
    return not path.is_file() or not is_same(path.read_text(encoding="utf-8"), made)


def outdated() -> list[str]:
    """Return the names of all pictures that the code would make differently now."""
    drawings = [name for name, draw in DRAWINGS.items() if is_outdated(OUT / f"{name}.svg", draw())]
    pages = [
        name for name, record in records().items() if is_outdated(RECORDS / f"{name}.txt", record())
    ]
    return drawings + pages


def take_screenshot(name: str, out: Path) -> None:
    """Write the light and the dark picture of a page into a folder."""
    if name == "explorer":
        screenshot_explorer(PRONUNCIATION, WORD, STEP, PLACE, out)
    else:
        screenshot_page(written_page(name), *PAGES[name], name, out)


def make(names: Iterable[str]) -> None:
    """Write pictures, and the records of pages."""
    OUT.mkdir(parents=True, exist_ok=True)
    RECORDS.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in DRAWINGS:
            (OUT / f"{name}.svg").write_text(DRAWINGS[name](), encoding="utf-8")
        else:
            take_screenshot(name, OUT)
            (RECORDS / f"{name}.txt").write_text(records()[name](), encoding="utf-8")
        print(f"{name} is up to date")


def main(arguments: list[str]) -> int:
    """Make the outdated pictures, or all; or with --check only name the outdated ones."""
    found = [*DRAWINGS, *records()] if "--all" in arguments else outdated()
    if "--check" not in arguments:
        make(found)
        return 0
    for name in found:
        print(f"docs/assets/product: the picture {name} is outdated. Run {COMMAND}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The packages of Foveal as a drawing: a row for each, in its layer, with arcs to the packages that it imports.

The layers come from the contract in pyproject.toml, the imports from the code. An arc is left out if another
import implies it.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import grimp
from product_svg import svg

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "foveal"

Imports = Mapping[str, set[str]]  # the packages that a package imports

LEFT, TOP, NAME_WIDTH = 14, 14, 150
ROW, GAP = 24, 8  # pixels of a package, and between two layers
NEAREST, FARTHEST = 20, 120  # pixels that the shortest and the longest arc reach to the right


def layers() -> list[list[str]]:
    """Return the packages of each layer, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def imports() -> Imports:
    """Return the packages that each package imports."""
    graph = grimp.build_graph(PACKAGE)
    names = {child.rpartition(".")[2] for child in graph.find_children(PACKAGE)}
    for name in names:
        graph.squash_module(f"{PACKAGE}.{name}")
    return {
        name: {
            used.rpartition(".")[2]
            for used in graph.find_modules_directly_imported_by(f"{PACKAGE}.{name}")
        }
        & (names - {name})
        for name in names
    }


def needed(by: Imports, names: Iterable[str]) -> set[str]:
    """Return these packages and the packages that they import, directly or indirectly."""
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += by[name]
    return seen


def needs_extra(name: str) -> bool:
    """Return whether the import of a package checks that optional packages are installed."""
    path = ROOT / PACKAGE / name / "__init__.py"
    return path.is_file() and "_require(" in path.read_text(encoding="utf-8")


def architecture() -> str:
    """Draw the packages."""
    stacked, used_by = layers(), imports()
    boxes, middle, y = list[str](), dict[str, float](), float(TOP)
    for layer in stacked:
        boxes.append(
            f'<rect class="ink" fill-opacity="0.07" x="{LEFT}" y="{y:g}" width="{NAME_WIDTH}" '
            f'height="{ROW * len(layer)}" rx="4"/>'
        )
        for name in layer:
            weight = "" if any(map(needs_extra, needed(used_by, [name]))) else " strong"
            boxes.append(
                f'<text class="text{weight}" x="{LEFT + 12}" y="{y + 16.5:g}">{name}</text>'
            )
            middle[name] = y + ROW / 2
            y += ROW
        y += GAP
    note = "bold: works without extras; arc: imports, except implied ones"
    return svg(
        "The packages of Foveal",
        f"{len(middle)} packages in {len(stacked)} layers, from {stacked[0][0]} to {stacked[-1][0]}.",
        [
            *boxes,
            *_arcs(used_by, middle),
            f'<text class="muted small" x="{LEFT}" y="{y + 10:g}">{note}</text>',
        ],
        width=2 * LEFT + 350,
        height=y + 22,
    )


def _arcs(used_by: Imports, middle: Mapping[str, float]) -> Iterator[str]:
    """Draw a curve to the right of the names for each import, with an arrow at its end."""
    spans = [
        (middle[name], middle[one])
        for name, used in used_by.items()
        for one in used
        if one not in needed(used_by, used - {one})
    ]
    longest = max(end - start for start, end in spans)
    left = LEFT + NAME_WIDTH + 4
    for start, end in sorted(spans):
        # A cubic curve reaches three quarters of the way to its control points.
        control = left + (NEAREST + (FARTHEST - NEAREST) * (end - start) / longest) * 4 / 3
        curve = f"M{left} {start:g}C{control:.1f} {start:g} {control:.1f} {end:g} {left} {end:g}"
        head = f"M{left + 6} {end - 3.5:g}L{left} {end:g}L{left + 6} {end + 3.5:g}"
        yield f'<path class="stroke" stroke-width="1.3" stroke-opacity="0.75" d="{curve}{head}"/>'

"""The speed of a training step next to other libraries as a drawing, from results/structures_native.json.

A bar for each structure and library extends from the smallest to the largest speedup over all sizes of the input,
with a dot for each size. The axis is logarithmic.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from product_svg import svg

from benchmarks.results import Results

RESULTS = Path(__file__).resolve().parent.parent / "results/structures_native.json"
PEERS = ("pytorch-crf", "supar", "torch-struct")  # each has the color of its index
ROW_NAME = re.compile(rf"(?P<structure>.+) train \(.*\) vs (?P<peer>{'|'.join(PEERS)})")

LEFT, TOP, WIDTH = 130, 44, 470  # of the plot
BAR, BAR_GAP, STRUCTURE_GAP = 11, 5, 12

Speedups = Mapping[str, Mapping[str, Sequence[float]]]  # by structure and peer, one for each size


def speedups() -> Speedups:
    """Return how many times faster a training step is."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in Results.load(RESULTS).rows:
        if match := ROW_NAME.fullmatch(row.name):
            found[match["structure"]][match["peer"]].append(row.value)
    return found


def speed() -> str:
    """Draw the speedups."""
    found = speedups()
    values = [value for peers in found.values() for sizes in peers.values() for value in sizes]
    first = math.floor(math.log10(min(1.0, *values)))
    last = math.ceil(math.log10(max(values)))

    def at(value: float) -> float:
        return round(LEFT + WIDTH * (math.log10(value) - first) / (last - first), 1)

    bars, y = list[str](), float(TOP)
    for structure, peers in found.items():
        top = y
        for peer in (peer for peer in PEERS if peer in peers):
            bars += _bar(peers[peer], PEERS.index(peer), y, at)
            y += BAR + BAR_GAP
        bars.append(
            f'<text class="text" x="{LEFT - 12}" y="{(top + y) / 2 + 2:g}" text-anchor="end">{structure}</text>'
        )
        y += STRUCTURE_GAP
    said = [
        f"{structure}, {peer}: {min(sizes):.3g} to {max(sizes):.3g}"
        for structure, peers in found.items()
        for peer, sizes in peers.items()
    ]
    note = "times faster than the library of this color; a dot is one size of the input"
    return svg(
        "Speed of a training step compared with other libraries",
        f"Times faster with the C++ kernels, on one thread. {'; '.join(said)}.",
        [
            *_axis(range(first, last + 1), y, at),
            *bars,
            *_legend(),
            f'<text class="muted small" x="{LEFT}" y="{y + 34:g}">{note}</text>',
        ],
        width=LEFT + WIDTH + 40,
        height=y + 48,
    )


def _axis(decades: Sequence[int], bottom: float, at: Callable[[float], float]) -> Iterator[str]:
    for decade in decades:
        x, kind = at(10.0**decade), "edge" if decade == 0 else "rule"
        yield f'<path class="{kind}" d="M{x} {TOP - 10}V{bottom - 6:g}"/>'
        yield (
            f'<text class="muted small" x="{x}" y="{bottom + 10:g}" text-anchor="middle">'
            f"{10**decade:,}</text>"
        )


def _bar(
    values: Sequence[float], color: int, y: float, at: Callable[[float], float]
) -> Iterator[str]:
    low, high = at(min(values)), at(max(values))
    yield (
        f'<rect class="m{color}" fill-opacity="0.35" x="{low}" y="{y:g}" width="{high - low:.1f}" '
        f'height="{BAR}" rx="3"/>'
    )
    for value in sorted(values):
        yield f'<circle class="m{color}" cx="{at(value)}" cy="{y + BAR / 2:g}" r="3.2"/>'


def _legend() -> Iterator[str]:
    for color, peer in enumerate(PEERS):
        x = LEFT + 150 * color
        yield f'<rect class="m{color}" x="{x}" y="13" width="22" height="{BAR}" rx="3"/>'
        yield f'<text class="text" x="{x + 29}" y="23">{peer}</text>'

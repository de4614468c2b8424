"""Curves of the documentation, drawn from the figures in results/ when it is built: name -> SVG.

A line joins the means over seeds; the band around it goes from the lowest to the highest. What is
compared differs in dashes as well as in color, so that gray print reads the same.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import matplotlib as mpl
from docs_pictures import INK, RED, STYLE, svg
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RESULTS = Path(__file__).resolve().parent.parent / "results"
LINES = {"attention": (INK, "-", "o"), "no attention": (RED, "--", "s")}

NETWORKS = {"transformer": (INK, "-", "o"), "lstm": (RED, "--", "s")}
SCALING = "self_attention_lm"


class Point(NamedTuple):
    """A mean over seeds, and how far the seeds lie apart."""

    place: int  # on the horizontal axis
    mean: float
    lowest: float
    highest: float


Curves: TypeAlias = Mapping[str, Sequence[Point]]  # by system: a key of LINES


def read_curves(example: str, name: re.Pattern[str]) -> Mapping[str, Curves]:
    """The rows of a results file whose names match, by panel and by curve.

    Args:
        example: the name of the file in results/.
        name: with the groups `panel`, `curve` and `place`.
    """
    rows = json.loads((RESULTS / f"{example}.json").read_text(encoding="utf-8"))["rows"]
    panels: dict[str, dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if found := name.fullmatch(row["name"]):
            lowest, highest = row["spread"] or (row["value"], row["value"])
            point = Point(int(found["place"]), row["value"], lowest, highest)
            panels[found["panel"]][found["curve"]].append(point)
    if not panels:
        raise ValueError(f"results/{example}.json: no row is called like {name.pattern!r}.")
    return panels


def _draw(axes: Axes, curves: Curves, trained: int) -> None:
    places = [point.place for point in curves["attention"]]
    for curve, (color, dashes, marker) in LINES.items():
        _, means, lowest, highest = zip(*curves[curve], strict=True)
        axes.fill_between(places, lowest, highest, color=color, alpha=0.15, linewidth=0)
        axes.plot(places, means, dashes, color=color, marker=marker, markersize=4, label=curve)
    axes.set_xticks(places)
    axes.set_ylim(-4, 112)
    axes.set_yticks(range(0, 101, 25))
    axes.axvspan(trained, places[-1], color="0.94", zorder=0, linewidth=0)
    axes.text(places[-1], 110, "not trained on ", ha="right", va="top", color="0.35", fontsize=8)


def _svg(panels: Mapping[str, Curves], across: str, trained: int) -> str:
    """Panels side by side; the part of the horizontal axis beyond `trained` is shaded."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * len(panels), 2.8), layout="constrained")
        for place, (title, curves) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(1, len(panels), place)
            _draw(axes, curves, trained)
            axes.set_title(title, fontsize=9)
            axes.set_xlabel(across)
            if place == 1:
                axes.set_ylabel("outputs without a mistake, %")
                figure.legend(loc="outside lower center", ncols=len(LINES), frameon=False)
        return svg(figure)


def _copy_and_reverse() -> str:
    name = re.compile("(?P<panel>copy|reverse) with (?P<curve>.+), length (?P<place>[0-9]+)")
    return _svg(read_curves("copy_and_reverse", name), "symbols in the sequence", trained=20)


def _prefix_to_infix() -> str:
    name = re.compile("(?P<panel>formulas) of depth (?P<place>[0-9]+) with (?P<curve>.+)")
    return _svg(read_curves("prefix_to_infix", name), "depth of the formula", trained=4)


def scaling() -> str:
    """Bits per character by the number of weights, and by the number of characters of the training set."""
    name = re.compile(
        "(?P<panel>size|data) of (?P<curve>lstm|transformer), (?P<place>[0-9]+): bits per character"
    )
    panels = read_curves(SCALING, name)
    across = {"size": "weights", "data": "characters of the training set"}
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * len(panels), 2.8), layout="constrained")
        for place, (panel, curves) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(1, len(panels), place, xscale="log")
            for curve, points in curves.items():
                color, dashes, marker = NETWORKS[curve]
                places, means, lowest, highest = zip(*sorted(points), strict=True)
                axes.fill_between(places, lowest, highest, color=color, alpha=0.15, linewidth=0)
                label = curve if place == 1 else None
                axes.plot(
                    places, means, dashes, color=color, marker=marker, markersize=4, label=label
                )
            axes.set_xlabel(across[panel])
            if place == 1:
                axes.set_ylabel("bits per character, test")
                figure.legend(loc="outside lower center", ncols=len(NETWORKS), frameon=False)
        return svg(figure)


def _growth() -> str:
    """Time by size, one panel for each axis, with dotted lines for the exponents 1 and 2."""
    name = re.compile("time by (?P<panel>[a-z]+), (?P<curve>.+), (?P<place>[0-9]+)")
    panels = read_curves("growth", name)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.6, 6.6), layout="constrained")
        for place, (panel, curves) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(2, 2, place, xscale="log", yscale="log")
            for number, (curve, points) in enumerate(curves.items()):
                places, means, lowest, highest = zip(*sorted(points), strict=True)
                color, marker = (INK, RED)[number % 2], "os^vD*Px"[number]
                axes.fill_between(places, lowest, highest, color=color, alpha=0.15, linewidth=0)
                axes.plot(places, means, "-", color=color, marker=marker, markersize=4, label=curve)
            for power in (1, 2):
                ends = axes.get_xlim()
                start = axes.get_ylim()[0]
                heights = [start, start * (ends[1] / ends[0]) ** power]
                axes.plot(ends, heights, ":", color="0.6", scalex=False, scaley=False)
            axes.set_xlabel(panel)
            axes.set_ylabel("milliseconds")
            axes.legend(frameon=False, fontsize=7)
        return svg(figure)


CURVES: dict[str, Callable[[], str]] = {
    "growth": _growth,
    "copy_and_reverse": _copy_and_reverse,
    "prefix_to_infix": _prefix_to_infix,
}
if (RESULTS / f"{SCALING}.json").exists():
    CURVES[SCALING] = scaling

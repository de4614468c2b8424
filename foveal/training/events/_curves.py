"""The curves of a run as SVG: loss, metrics, learning rate and gradient norm over updates."""

import io
import math
from array import array
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ._log import read_log

INK, PALE, RED = "#1f3b5c", "#b8c4d2", "#c0392b"
_MAX_POINTS = 1000  # of a curve; more than that is averaged over stretches
_FEW_DECADES = 3  # below so many, 2 and 5 have labels, too
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text that can be selected, and drawn in a quarter of the time
    "svg.hashsalt": "foveal",  # the same log gives the same bytes
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw_curves(log: Path, out: Path) -> None:
    """Draw a log (`log.jsonl`) into an SVG file."""
    steps = {name: array("d") for name in ("step", "loss", "rate", "norm")}
    others = []  # of a long run there are few beside its steps
    for line in read_log(log):
        if line["event"] == "step_done":
            for name, values in steps.items():
                values.append(line[name])
        else:
            others.append(line)
    # matplotlib takes longer to import than torch; who does not draw does not wait for it.
    with import_module("matplotlib").rc_context(_STYLE):
        figure = import_module("matplotlib.figure").Figure(figsize=(8, 5.6))
        figure.subplots_adjust(
            left=0.09, right=0.98, bottom=0.09, top=0.94, hspace=0.4, wspace=0.25
        )
        loss, metric, rate, norm = figure.subplots(2, 2).flat
        _line(loss, steps["step"], steps["loss"], "training loss")
        _line(rate, steps["step"], steps["rate"], "learning rate")
        _line(norm, steps["step"], steps["norm"], "gradient norm")
        _scale_norm(norm, [value for value in steps["norm"] if value > 0])
        _metric(metric, others)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "foveal"})
    out.write_text(text.getvalue(), encoding="utf-8")


def _line(axes: Any, numbers: Sequence[float], every: Sequence[float], title: str) -> None:
    at, values = _thinned(numbers), _thinned(every)
    axes.plot(at, values, color=PALE, linewidth=0.8)
    axes.plot(at, _smoothed(values), color=INK, linewidth=1.2)
    axes.set_title(title, loc="left")
    axes.set_xlabel("updates")


def _scale_norm(axes: Any, norms: Sequence[float]) -> None:
    """A logarithmic axis if the norms span a power of ten, so that it has at least two labels."""
    decades = math.log10(max(norms) / min(norms)) if norms else 0.0
    if not 1 <= decades < math.inf:
        return
    axes.set_yscale("log")
    parts = (1.0, 2.0, 5.0) if decades < _FEW_DECADES else (1.0,)
    locator = import_module("matplotlib.ticker").LogLocator(subs=parts)
    axes.yaxis.set_major_locator(locator)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")


def _metric(axes: Any, lines: Sequence[dict[str, Any]]) -> None:
    """The main metric, and where it was best."""
    main = next((line["metric"] for line in lines if line["event"] == "started"), "")
    evaluations = [line for line in lines if line["event"] == "evaluated"]
    at = [line["step"] for line in evaluations]
    values = [line["metrics"][main] for line in evaluations]
    axes.plot(at, values, color=INK, linewidth=1, marker=".", markersize=4)
    best = [line for line in lines if line["event"] == "improved"]
    if best:
        axes.plot(best[-1]["step"], best[-1]["value"], "o", color=RED, markersize=5)
        axes.annotate(
            f"{best[-1]['value']:.4g}",
            (best[-1]["step"], best[-1]["value"]),
            textcoords="offset points",
            xytext=(0, 6),
            color=RED,
            ha="center",
        )
    axes.set_title(f"validation {main}, free-running", loc="left")
    axes.set_xlabel("updates")


def _thinned(values: Sequence[float]) -> list[float]:
    """Means of stretches of equal length, so that there are not too many."""
    stretch = -(-len(values) // _MAX_POINTS)
    if stretch <= 1:
        return list(values)
    parts = [values[start : start + stretch] for start in range(0, len(values), stretch)]
    return [sum(part) / len(part) for part in parts]


def _smoothed(values: Sequence[float]) -> list[float]:
    """Means over a fiftieth of all, centered."""
    reach = len(values) // 100
    windows = (values[max(0, n - reach) : n + reach + 1] for n in range(len(values)))
    return [sum(window) / len(window) for window in windows]

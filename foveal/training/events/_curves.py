"""The curves of a run, from its log: loss, validation score, gradient norm and learning rate."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...views import Series, curves
from ...views._curves import Point
from ...views._grid import grid
from ._log import read_log

MOST_POINTS = 200  # points per curve; longer curves are averaged


class RunCurves(NamedTuple):
    """The series of a run. They are empty if the run has logged nothing."""

    loss: Series
    scores: Series  # the main metric at every validation
    norm: Series
    rate: Series

    def drawings(self) -> list[str]:
        """Return one drawing per series; scores are omitted if there was no validation."""
        found = [curves([self.loss], title="Training loss per token")]
        if self.scores.points:
            title = f"Validation, free-running: {self.scores.name}"
            found.append(curves([self.scores], title=title))
        found.append(curves([self.norm], title="Gradient norm, before clipping"))
        return [*found, curves([self.rate], title="Learning rate")]


def run_curves(log: Path) -> RunCurves:
    """Read the series of a run from `log.jsonl`."""
    steps = {name: array("d") for name in ("step", "loss", "norm", "rate")}
    others = list[dict[str, Any]]()  # few compared with the steps of a long run
    for line in read_log(log) if log.is_file() else ():
        if line["event"] == "step_done":
            for name, values in steps.items():
                values.append(line[name])
        elif line["event"] in ("started", "evaluated"):
            others.append(line)
    loss, norm, rate = (
        Series(name=label, points=_averaged(steps["step"], steps[name]))
        for name, label in (
            ("loss", "training loss"),
            ("norm", "gradient norm"),
            ("rate", "learning rate"),
        )
    )
    return RunCurves(loss, _scores(others), norm, rate)


def draw_curves(log: Path, out: Path) -> None:
    """Render a log (`log.jsonl`) as an SVG file."""
    out.write_text(grid(run_curves(log).drawings()), encoding="utf-8")


def _scores(lines: Sequence[dict[str, Any]]) -> Series:
    main = next((line["metric"] for line in lines if line["event"] == "started"), "")
    points = tuple(
        (line["step"], line["metrics"][main]) for line in lines if line["event"] == "evaluated"
    )
    return Series(name=main or "score", points=points)


def _averaged(steps: Sequence[float], values: Sequence[float]) -> tuple[Point, ...]:
    """Average intervals of equal length to limit the number of points."""
    stretch = max(1, -(-len(values) // MOST_POINTS))
    return tuple(
        (
            steps[min(start + stretch, len(steps)) - 1],
            sum(values[start : start + stretch]) / len(values[start : start + stretch]),
        )
        for start in range(0, len(values), stretch)
    )

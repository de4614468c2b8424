"""The curves of a run, from its log: loss, validation score, learning rate, gradient norm."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..training import read_log
from ..views import Section, Series, curves, series_table
from ..views._curves import Point

MOST_POINTS = 200  # of a curve; of more, stretches are averaged
_GREEDY = (
    "The validation curve is greedy ({metric} with a beam of 1), to save time. The scores above are measured "
    "with a beam of {beam_size}, so that the last point of the curve and the dev score may differ."
)


def curves_section(log: Path, *, beam_size: int = 1) -> Section:
    """The section of a page; a run that has not logged anything has a sentence instead.

    Args:
        log: the log of a run.
        beam_size: of the beam that the scores of the report are measured with.
    """
    steps = {name: array("d") for name in ("step", "loss", "rate", "norm")}
    others = list[dict[str, Any]]()  # of a long run there are few beside its steps
    for line in read_log(log) if log.is_file() else ():
        if line["event"] == "step_done":
            for name, values in steps.items():
                values.append(line[name])
        elif line["event"] in ("started", "evaluated"):
            others.append(line)
    if not steps["step"]:
        return Section(title="Curves", text="The folder has no log of a training.")
    loss, rate, norm = (
        Series(name=label, points=_averaged(steps["step"], steps[name]))
        for name, label in (
            ("loss", "training loss"),
            ("rate", "learning rate"),
            ("norm", "gradient norm"),
        )
    )
    scores = _scores(others)
    drawings = [curves([loss], title="Training loss, per symbol")]
    if scores.points:
        drawings.append(curves([scores], title=f"Validation, free-running: {scores.name}"))
    drawings += [
        curves([norm], title="Gradient norm, before clipping"),
        curves([rate], title="Learning rate"),
    ]
    table = series_table([loss, scores, norm, rate], caption="Values of the curves")
    text = (
        _GREEDY.format(metric=scores.name, beam_size=beam_size)
        if scores.points and beam_size > 1
        else ""
    )
    return Section(title="Curves", text=text, drawings=tuple(drawings), tables=(table,))


def _scores(lines: Sequence[dict[str, Any]]) -> Series:
    """The main metric at every validation."""
    main = next((line["metric"] for line in lines if line["event"] == "started"), "")
    points = tuple(
        (line["step"], line["metrics"][main]) for line in lines if line["event"] == "evaluated"
    )
    return Series(name=main or "score", points=points)


def _averaged(steps: Sequence[float], values: Sequence[float]) -> tuple[Point, ...]:
    """Means of stretches of equal length, so that there are not too many points."""
    stretch = -(-len(values) // MOST_POINTS)
    return tuple(
        (
            steps[min(start + stretch, len(steps)) - 1],
            sum(values[start : start + stretch]) / len(values[start : start + stretch]),
        )
        for start in range(0, len(values), stretch)
    )

"""The report of a run: curves, scores, error analysis, calibration, faithfulness of attention, the doctor's
findings, and the settings with their reasons.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..attention import AttentionTrace
from ..bundles import load_bundle
from ..data import Example
from ..data._example import evenly_spaced
from ..errors import FovealError, ValueRangeError
from ..planning._choices import Planned, load_plan
from ..specs import settings
from ..tasks import AbstractAnsweringTask, AbstractTask, Evaluation
from ..views import Section, Series, curves, page, series_table
from ..views._drawing import drawing
from ..views._tables import Table
from ..views._text import bounded, number
from ._run_curves import curves_section
from .doctor._findings import examine, findings_section
from .explaining._faithfulness import faithfulness

MOST_EXAMPLES = 1000  # a report predicts at most this many; an evaluation has no limit
MOST_MISTAKES, DRAWN_MISTAKES = 12, 3
MOST_CELLS_DRAWN = 1500  # cells of a mistake's attention
MOST_FRAMES_DRAWN = 40  # maximum number of copies of a picture, one for each word
# Examples for faithfulness, and the sum of their squared lengths: a second or two.
MOST_TESTED, MOST_TESTED_WORK = 100, 20_000


class Scored(NamedTuple):
    """Examples with their name and the model's evaluation on them."""

    name: str
    examples: Sequence[Example]
    found: Evaluation


def _ignore(number: int) -> None:
    """Ignore progress."""
    del number


def report(
    run: Path | str,
    test: Sequence[Example] | None = None,
    *,
    answered: Callable[[int], None] = _ignore,
    also: Sequence[type] = (),
) -> str:
    """Render the report of a run as an HTML page.

    Args:
        run: The folder of a run.
        test: Examples to evaluate the model on. Defaults to the run's test file or, without one, its validation
            file, if it still exists. At most a thousand evenly spaced examples are used.
        answered: A callback that receives progress after every few examples.
        also: Spec classes of custom parts, for a model that uses parts from outside this package.

    Returns:
        The HTML of the report.
    """
    folder = Path(run)
    task, planned = load_bundle(folder, also=also), _plan(folder, also)
    scored = _scored(task, planned, test, answered)
    sections = [
        _scores(folder, task, scored),
        curves_section(folder / "log.jsonl", beam_size=task.prediction.beam_size),
    ]
    sections.append(findings_section(examine(folder, also=also)))
    if scored is not None:
        sections += _quality(task, scored)
    if planned is not None:
        sections.append(_settings(planned))
    return page(f"Report of {folder.resolve().name}", sections)


def _plan(folder: Path, also: Sequence[type]) -> Planned | None:
    """Return the run's settings; a bundle that was saved by hand has none."""
    try:
        return load_plan(folder, also=also)
    except FovealError:
        return None


def _scored(
    task: AbstractTask[Any],
    planned: Planned | None,
    test: Sequence[Example] | None,
    answered: Callable[[int], None],
) -> Scored | None:
    """Return the examples of the report with the model's predictions."""
    sets: list[tuple[str, Any]] = [("given", test)]
    if planned is not None:
        sets += [("test", planned.run.test), ("dev", planned.run.dev)]
    for name, source in sets:
        try:
            examples = list(source) if source is not None else []
        except FovealError:  # the file has been moved since
            continue
        if examples:
            some = evenly_spaced(examples, MOST_EXAMPLES)
            found = task.evaluate(some, answered=answered)
            return Scored(name, found.examples, found)
    return None


def _scores(folder: Path, task: AbstractTask[Any], scored: Scored | None) -> Section:
    """List the final scores of training and the scores of this report."""
    path = folder / "metrics.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    rows = [
        (name, metric, *_interval(each["value"], each["low"], each["high"]), each["signature"])
        for name in ("dev", "test")
        for metric, each in stored.get(name, {}).items()
    ]
    if scored is not None and scored.name == "given":
        rows += [
            ("given", name, *_interval(each.value, each.low, each.high), each.signature)
            for name, each in scored.found.metrics.items()
        ]
    size = sum(parameter.numel() for parameter in task.model.parameters())
    said = [f"Task: {task.spec.kind}, {size:,} weights."]
    if "step" in stored:
        said.append(
            f"Trained for {stored['step']:,} steps in {stored['seconds'] / 60:.1f} minutes; the model "
            f"has the weights of step {stored['best_step']:,}."
        )
    if any(row[0] == "dev" for row in rows):
        said.append(
            "The validation scores are slightly optimistic: they selected the weights and the calibration."
        )
    if scored is None:
        said.append(
            "The test file and the validation file of the run were not found, so this report has no "
            "predictions. Give a file to see mistakes, confidence and attention."
        )
    columns = ("examples", "score", "value", "95 % interval", "how")
    table = Table(caption="Scores", columns=columns, rows=tuple(rows))
    return Section(title="Scores", text=" ".join(said), tables=(table,) if rows else ())


def _interval(value: float, low: float, high: float) -> tuple[str, str]:
    return f"{value:.2f}", f"{low:.2f} to {high:.2f}"


def _quality(task: AbstractTask[Any], scored: Scored) -> list[Section]:
    """Summarize the quality of the predictions."""
    found, sections = scored.found, list[Section]()
    where = f"On {len(scored.examples):,} examples ({scored.name})."
    if found.slices:
        rows = tuple(
            (part.name, *_interval(*part.metric[:3]), f"{part.num_examples:,}")
            for part in found.slices
        )
        columns = (found.main.name, "value", "95 % interval", "examples")
        table = Table(caption=f"{found.main.name} by slice", columns=columns, rows=rows)
        sections.append(Section(title="Where the errors are", text=where, tables=(table,)))
    if found.predictions:
        sections += [_mistakes(task, scored), _confidence(found, where)]
    if task.attends and task.can_erase:
        sections.append(_attention(task, scored.examples))
    return sections


def _mistakes(task: AbstractTask[Any], scored: Scored) -> Section:
    """List the most confident mistakes, with their attention."""
    wrong, title = scored.found.mistakes, "Most confident mistakes"
    if not wrong:
        return Section(title=title, text="The model makes no mistake on these examples.")
    table = Table(
        caption="Most confident mistakes",
        columns=("source", "expected", "output", "confidence"),
        rows=tuple(
            (*map(bounded, (_source(one), expected, said.output)), number(said.confidence))
            for one, expected, said in wrong[:MOST_MISTAKES]
        ),
    )
    drawings = list[str]()
    if isinstance(task, AbstractAnsweringTask):
        shown = wrong[:DRAWN_MISTAKES]
        traced = task.predict([row[0] for row in shown], replace(task.prediction, trace=True))
        for (example, expected, _), answer in zip(shown, traced, strict=True):
            trace, seen = answer.trace, task.picture_seen(example)
            if trace is not None and _is_small(trace, seen):
                heading = f"{bounded(_source(example))}: {bounded(answer.output)}, not {bounded(expected)}"
                drawings.append(drawing(trace, title=heading, image=seen))
    text = f"{len(wrong):,} of {len(scored.examples):,} outputs differ from the reference."
    if drawings:
        text += " The figures show the attention for the first ones."
    return Section(title=title, text=text, drawings=tuple(drawings), tables=(table,))


def _is_small(trace: AttentionTrace, picture: np.ndarray | None) -> bool:
    """Return whether a drawing stays readable: few enough cells, or few enough copies of an image."""
    if trace.layout.kind == "grid" and picture is not None:
        return len(trace.targets) <= MOST_FRAMES_DRAWN
    return len(trace.sources) * len(trace.targets) <= MOST_CELLS_DRAWN


def _source(example: Example) -> str:
    return f"{example.source} [{example.features}]" if example.features else str(example.source)


def _confidence(found: Evaluation, where: str) -> Section:
    """Plot the reliability diagram, and the error rate when low-confidence answers are left out."""
    reliability, curve = found.reliability, found.risk_coverage
    assert reliability is not None
    assert curve is not None
    seen = Series(
        name="fraction correct",
        points=tuple((one.confidence, one.right) for one in reliability.bins),
    )
    perfect = Series(name="perfect calibration", points=((0.0, 0.0), (1.0, 1.0)))
    risk = Series(name="wrong", points=tuple(zip(curve.coverage, curve.risk, strict=True)))
    kept = ", ".join(
        f"{curve.coverage_at(most):.0%} at {most:.0%} errors" for most in (0.01, 0.05, 0.1)
    )
    text = (
        f"{where} Expected calibration error {reliability.ece:.3f}; a perfectly calibrated model "
        f"would have {reliability.chance:.3f} by chance on this number of examples. Fraction of "
        f"answers to keep for an error rate: {kept}."
    )
    drawings = (
        curves(
            [seen, perfect], title="Reliability", x_label="confidence", y_label="fraction correct"
        ),
        curves(
            [risk],
            title="Risk against coverage",
            x_label="fraction of answers kept",
            y_label="wrong",
        ),
    )
    tables = (
        series_table([seen], x_label="confidence", caption="Reliability"),
        series_table([risk], x_label="fraction of answers kept", caption="Risk against coverage"),
    )
    return Section(title="Calibration of confidence", text=text, drawings=drawings, tables=tables)


def _attention(task: AbstractTask[Any], examples: Sequence[Example]) -> Section:
    """Measure the faithfulness of attention on some of the examples."""
    some, work = list[Example](), 0
    for example in evenly_spaced(examples, MOST_TESTED):
        work += task.size(example) ** 2
        if work > MOST_TESTED_WORK and some:
            break
        some.append(example)
    title = "Faithfulness of attention"
    try:
        found = faithfulness(task, some)
    except ValueRangeError:
        return Section(title=title, text="No output token of these examples attends to an input.")
    rows = (
        ("most attended position", found.attended, found.whole_attended),
        ("random other position", found.random, found.whole_random),
    )
    table = Table(
        caption="Change of log-probability when a position is erased",
        columns=("erased", "token of the step", "95 % interval", "whole output", "95 % interval"),
        rows=tuple((name, *_interval(*own), *_interval(*whole)) for name, own, whole in rows),
    )
    return Section(title=title, text=found.text(), tables=(table,))


def _settings(planned: Planned) -> Section:
    """List the settings that differ from their defaults, with the reasons."""
    rows = list[tuple[str, ...]]()
    for setting in settings(planned.run):
        choice = planned.choice_of(setting.path)
        if choice is not None:
            rows.append((setting.path, bounded(setting.text), choice.origin, choice.reason))
    table = Table(
        caption="Chosen settings",
        columns=("setting", "value", "from", "why"),
        rows=tuple(rows),
        folded=True,
    )
    text = "Other settings have their defaults; foveal explain-config lists all settings."
    return Section(title="Settings", text=text, tables=(table,) if rows else ())

"""The doctor's examination of a run: its log, its model and the model's outputs.

    log.jsonl                     curves
    the bundle, some examples     vital signs, outputs

A failed run has no bundle; the doctor still examines its log.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ...attention import AttentionTrace
from ...bundles import load_bundle
from ...data import Example, InMemory
from ...data._example import evenly_spaced
from ...devices import is_gpu_idle
from ...errors import DataError, FovealError, SpecError
from ...planning._choices import load_plan
from ...tasks import AbstractTask
from ...training import Run, TrainingSpec, read_log
from ...views import Section, heatmap, page
from ...views._tables import Table
from ._finding import SEVERITIES, Finding
from ._from_curves import from_curves, from_unseen
from ._from_outputs import from_outputs, written
from ._from_signs import from_signs
from ._history import History, history_of
from ._remedies import Remedies
from ._vital_signs import measured

LOG, MANIFEST = "log.jsonl", "manifest.json"
MOST_EXAMPLES = 200  # examples that the model answers: enough for fractions, and fast
_ROWS = 32  # batch size for vital signs


def examine(
    run: Path | str, examples: Sequence[Example] | None = None, *, also: Sequence[type] = ()
) -> tuple[Finding, ...]:
    """Diagnose a run.

    Args:
        run: The folder of a run.
        examples: Examples that the model was not trained on. Defaults to the run's validation files, if they
            still exist.
        also: Spec classes of custom parts, for a model that uses parts from outside this package.

    Returns:
        The findings, alarms first; empty if the run is healthy.

    Raises:
        SpecError: The folder contains neither a log nor a model.
    """
    folder = Path(run)
    plan = _plan(folder, also)
    training = None if plan is None else plan.training
    if not (folder / LOG).is_file() and not (folder / MANIFEST).is_file():
        raise SpecError(
            f"{folder}: expected the folder of a run with {LOG} or {MANIFEST}, found neither. Use the "
            f"--out folder of foveal fit."
        )
    task = load_bundle(folder, also=also) if (folder / MANIFEST).is_file() else None
    spec = task.spec if task is not None else (None if plan is None else plan.task)
    history = history_of(read_log(folder / LOG)) if (folder / LOG).is_file() else History()
    if training is None and history.highest_rate > 0:  # a run from Python has it only in its log
        training = TrainingSpec(steps=1, learning_rate=history.highest_rate)
    remedies = Remedies(spec, training)
    if task is not None:
        history.uniform = task.guessing_loss
    found = [*from_curves(history, remedies), *_idle_gpu(history.device)]
    if task is not None:
        given = _validation(plan) if examples is None else list(examples)
        found += examine_task(task, given, history, training)
    return ranked(found)


def examine_task(
    task: AbstractTask[Any],
    examples: Sequence[Example],
    history: History | None = None,
    training: TrainingSpec | None = None,
) -> list[Finding]:
    """Diagnose a model on examples that it was not trained on."""
    remedies = Remedies(task.spec, training)
    usable = evenly_spaced(_encodable(task, examples), MOST_EXAMPLES)
    if not usable:
        return []
    outputs = written(task, usable)
    known = _on_unseen(task, usable)
    trace = "" if outputs is None else _map(outputs.traces)
    found = [
        _with_drawing(finding, trace)
        for finding in from_signs(measured(task, _batch(task, usable), _ROWS), remedies)
    ]
    if history is not None:
        found += from_unseen(history, known.loss, remedies)
    if outputs is not None:
        found += from_outputs(task, outputs, known.accuracy, remedies)
    return found


def ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sort alarms first, then warnings, then notes, without duplicates."""
    kept = {(each.severity, each.name, each.text): each for each in findings}
    return tuple(sorted(kept.values(), key=lambda each: SEVERITIES.index(each.severity)))


def findings_section(findings: Sequence[Finding]) -> Section:
    """Render the findings as a section of a page.

    Args:
        findings: Result of `examine`.

    Returns:
        A section for `foveal.views.page`.
    """
    title = "Findings of the doctor"
    if not findings:
        return Section(
            title=title,
            text="The doctor found no problem in gradients, attention, padding, curves and outputs.",
        )
    return Section(
        title=title,
        text="\n\n".join(f"{_heading(each)}. {_paragraphs(each)}" for each in findings),
        drawings=tuple(dict.fromkeys(each.drawing for each in findings if each.drawing)),
        tables=(_table(findings),),
    )


def findings_page(title: str, findings: Sequence[Finding]) -> str:
    """Render the findings as a page: a section for each, with its drawing, and a table of all numbers."""
    if not findings:
        return page(title, [findings_section(findings)])
    sections, drawn = list[Section](), {""}
    for each in findings:
        drawings = () if each.drawing in drawn else (each.drawing,)  # some findings share a drawing
        drawn.add(each.drawing)
        sections.append(Section(title=_heading(each), text=_paragraphs(each), drawings=drawings))
    return page(title, [*sections, Section(title="All findings", tables=(_table(findings),))])


def _heading(finding: Finding) -> str:
    return f"{finding.severity.capitalize()}: {finding.name}"


def _paragraphs(finding: Finding) -> str:
    return f"{finding.text}\n\nCause: {finding.cause}\n\nRemedy: {finding.remedy}"


def _table(findings: Sequence[Finding]) -> Table:
    rows = tuple(
        (
            finding.name,
            finding.severity,
            ", ".join(f"{name} {value:.4g}" for name, value in finding.numbers.items()),
            finding.remedy,
        )
        for finding in findings
    )
    return Table(
        caption="Findings", columns=("finding", "severity", "measured", "remedy"), rows=rows
    )


class _Unseen(NamedTuple):
    loss: float  # per token
    accuracy: float | None  # next-token accuracy after gold tokens


@torch.no_grad()
def _on_unseen(task: AbstractTask[Any], examples: Sequence[Example]) -> _Unseen:
    total, symbols, right = 0.0, 0, 0
    knows = True
    stream = task.batches(InMemory(tuple(examples)), batch_size=min(_ROWS, len(examples)))
    for batch in stream:
        found = task.forced(batch)
        total -= float(found.log_prob.sum())
        symbols += found.num_symbols
        knows = knows and found.num_right is not None
        right += found.num_right or 0
    return _Unseen(total / max(1, symbols), right / max(1, symbols) if knows else None)


def _batch(task: AbstractTask[Any], examples: Sequence[Example]) -> Any:
    some = tuple(evenly_spaced(examples, _ROWS))
    return next(iter(task.batches(InMemory(some), batch_size=len(some))))


def _encodable(task: AbstractTask[Any], examples: Sequence[Example]) -> list[Example]:
    """Leave out examples without a target, or with a label that the model does not know."""

    def usable(example: Example) -> bool:
        try:
            task.encode(example)
        except DataError:
            return False
        return True

    return [example for example in examples if usable(example)]


def _idle_gpu(used: str) -> Iterator[Finding]:
    """Report a run on the CPU of a machine that has a GPU."""
    if is_gpu_idle(used):
        yield Finding(
            name="idle GPU",
            severity="note",
            text=f"The run used the {used.upper()}, and this machine has a GPU that torch can use.",
            cause="--device cpu, or a GPU or a build of torch that was added after the run",
            remedy="--device auto; for small models and short texts, compare the steps per second first",
        )


def _plan(folder: Path, also: Sequence[type]) -> Run | None:
    try:
        return load_plan(folder, also=also).run
    except SpecError:  # a run from Python may have no plan
        return None


def _validation(run: Run | None) -> list[Example]:
    if run is None or run.dev is None:
        return []
    try:
        return list(run.dev)
    except (FovealError, OSError):  # moved, or changed since
        return []


def _map(traces: Sequence[AttentionTrace | None]) -> str:
    """Draw a heat map of the output with the most tokens."""
    seen = [each for each in traces if each is not None and each.targets]
    return heatmap(max(seen, key=lambda each: len(each.targets))) if seen else ""


def _with_drawing(finding: Finding, drawing: str) -> Finding:
    """Add a heat map of a real output to findings about attention."""
    if finding.drawing or "attention" not in finding.name:
        return finding
    return replace(finding, drawing=drawing)

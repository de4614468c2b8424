"""`foveal evaluate`: scores with confidence intervals, an error analysis, and calibration."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, arg

from ..data import Example
from ..data.formats._opening import Opened
from ..data.formats._tables import AbstractTable
from ..devices import resolve_device
from ..errors import SpecError
from ..metrics import compare
from ..metrics._intervals import Metric
from ..planning._files import open_for, own_examples
from ..specs import check
from ..specs._files import specs_in
from ..tasks import Evaluation
from ._bars import answering_bar
from ._loading import Loaded, load_models
from ._threads import use_threads

_MISTAKES = 5
_RISKS = (0.01, 0.05, 0.1)


def command(
    bundle: Positional[Path],
    files: Positional[tuple[str, ...]] = (),
    /,
    *,
    against: Path | None = None,
    beam_size: int | None = None,
    no_repeat_ngram: int | None = None,
    skip_header: bool = False,
    others: Annotated[tuple[Path, ...], arg(name="with")] = (),
    as_json: Annotated[bool, arg(name="json")] = False,
    with_specs: Path | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> None:
    """Score a model on files with targets.

    The command prints scores with confidence intervals, an error analysis and the calibration of confidence.

    Args:
        bundle: The folder of a model that `foveal fit` saved.
        files: Test files, in the format of the training files. A quoted pattern can match many files. Defaults
            to the test files of the run or, if it has none, to its validation files.
        against: Another model to score on the same files, with a significance test of the difference.
        beam_size: The beam size; 1 is greedy search. Defaults to the model's setting.
        no_repeat_ngram: The size of the n-grams that no answer may contain twice; 0 allows repetition. Defaults to
            the model's setting.
        skip_header: Skip the first line of each file, which contains column names. Column names that `fit` knows,
            such as source and target, are detected without this option.
        others: Folders of more models, which form an ensemble with the first.
        as_json: Print the whole evaluation as one JSON object.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        threads: The number of threads that torch uses. Defaults to OMP_NUM_THREADS, or to one per core.
        device: The device to compute on: auto, cpu, cuda, cuda:1 or mps. auto uses a GPU if there is one.
    """
    use_threads(threads)
    also, used = specs_in(with_specs), resolve_device(device)
    opened = _opened(bundle, files, also, skip_header=skip_header)
    examples = list(opened.source)
    given = {"beam_size": beam_size, "no_repeat_ngram": no_repeat_ngram}
    search = {name: value for name, value in given.items() if value is not None}
    found = _evaluated(load_models(bundle, others, also, used), examples, search, as_json)
    other = None
    if against is not None:
        other = _evaluated(load_models(against, (), also, used), examples, search, as_json)
    if as_json:
        sys.stdout.write(json.dumps(_data(found, other), ensure_ascii=False) + "\n")
        return
    console = Console(highlight=False)
    console.print(f"{len(examples):,} examples; {opened.reason}", markup=False)
    console.print(_scores(found))
    if found.warning is not None:
        console.print(f"warning: {found.warning}", style="yellow", markup=False, soft_wrap=True)
    if other is not None:
        _say_difference(console, found, other, str(against))
    if found.slices:
        console.print(_slices(found))
    if found.reliability is not None:
        _say_confidence(console, found)
        _say_mistakes(console, found)


def _opened(
    bundle: Path, files: Sequence[str], also: Sequence[type], *, skip_header: bool
) -> Opened:
    """Return the examples to score on."""
    if not files:
        return own_examples(bundle, also)
    opened = open_for(bundle, files, also)
    if not skip_header:
        return opened
    if not isinstance(opened.source, AbstractTable):
        raise SpecError(
            f"--skip-header: only tab-separated and comma-separated files have a header, got "
            f"{opened.source.kind}. Remove the option."
        )
    return opened._replace(source=replace(opened.source, header=True))


def _evaluated(
    loaded: Loaded, examples: Sequence[Example], search: Mapping[str, int], is_quiet: bool
) -> Evaluation:
    """Evaluate the model, with a progress bar on a terminal, because every example needs a search."""
    settings = replace(loaded.task.prediction, **search)
    check(settings)
    with answering_bar(len(examples), is_quiet=is_quiet) as answered:
        return loaded.task.evaluate(examples, settings, answered=answered)


def _scores(found: Evaluation) -> Table:
    table = Table("score", "value", "95 % interval", "", box=None, padding=(0, 2, 0, 0))
    for name, metric in found.metrics.items():
        interval = f"{metric.low:.2f} to {metric.high:.2f}"
        table.add_row(name, f"{metric.value:.2f}", interval, metric.signature)
    return table


def _slices(found: Evaluation) -> Table:
    table = Table(
        f"{found.main.name} by slice",
        "value",
        "95 % interval",
        "examples",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for part in found.slices:
        metric = part.metric
        interval = f"{metric.low:.2f} to {metric.high:.2f}"
        table.add_row(part.name, f"{metric.value:.2f}", interval, f"{part.num_examples:,}")
    return table


def _say_difference(console: Console, found: Evaluation, other: Evaluation, name: str) -> None:
    main = found.main.name
    difference = compare(other.statistics[main], found.statistics[main])
    console.print(
        f"difference to {name} ({main} {other.value:.2f}): {difference.difference:+.2f} "
        f"({difference.low:+.2f} to {difference.high:+.2f}), p = {difference.p_value:.3f}",
        markup=False,
    )


def _say_confidence(console: Console, found: Evaluation) -> None:
    reliability, curve = found.reliability, found.risk_coverage
    assert reliability is not None
    assert curve is not None
    console.print(
        f"confidence: expected calibration error {reliability.ece:.3f} "
        f"({reliability.chance:.3f} for a perfectly calibrated model, by chance)"
    )
    kept = ", ".join(f"{curve.coverage_at(risk):.0%} at {risk:.0%} errors" for risk in _RISKS)
    console.print(f"fraction of answers to keep for an error rate: {kept}")


def _say_mistakes(console: Console, found: Evaluation) -> None:
    """Print the most confident mistakes."""
    if not found.mistakes:
        return
    table = Table("most confident mistakes", "expected", "output", "confidence", box=None)
    for example, expected, prediction in found.mistakes[:_MISTAKES]:
        cells = (str(example.source), expected, prediction.output)
        table.add_row(*map(escape, cells), f"{prediction.confidence:.2f}")
    console.print(table)


def _data(found: Evaluation, other: Evaluation | None) -> dict[str, Any]:
    """Return the whole evaluation as JSON data."""
    data: dict[str, Any] = {
        "examples": len(found.examples),
        "main": found.main.name,
        "metrics": _metrics(found.metrics),
        "baseline": None if found.baseline is None else found.baseline._asdict(),
        "warning": found.warning,
        "slices": [
            {"name": part.name, "examples": part.num_examples, **part.metric._asdict()}
            for part in found.slices
        ],
    }
    if found.reliability is not None and found.risk_coverage is not None:
        data["reliability"] = found.reliability._asdict() | {
            "bins": [one._asdict() for one in found.reliability.bins]
        }
        data["risk_coverage"] = found.risk_coverage._asdict()
    if other is not None:
        main = found.main.name
        difference = compare(other.statistics[main], found.statistics[main])
        data["against"] = {"metrics": _metrics(other.metrics), **difference._asdict()}
    return data


def _metrics(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {name: metric._asdict() for name, metric in metrics.items()}

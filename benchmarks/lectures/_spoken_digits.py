"""Strings of spoken digits: word error rates with new speakers and on another corpus, and errors of forced alignment.

results/spoken_digits.json

CTC may write a digit when it begins or when it ends. The lag is the median over the development strings of the time from the
middle of a pause to its estimate; errors on the test strings are those after subtracting the lag.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.datasets import data_folder
from foveal.tasks import AbstractTask, Transcription
from recipes import spoken_digits

from ..records._fitting import Cost, fitted_seeds
from ..results import Row, folder_digests
from ._comparison import mean_row, spec_of, update

NAME = "spoken_digits"
PARTS = {"test": "new speakers", "shift": "other corpus"}
WITHIN = 20, 50  # milliseconds, as in scores of phone boundaries


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/spoken_digits.json with the cases that were fitted, each with its fitted seeds."""
    rows, specs = list[Row](), dict[str, object]()
    for case in cases:
        folders = fitted_seeds(runs, NAME, case, seeds)
        if folders:
            specs[case] = spec_of(spoken_digits.recipe(case))
            rows += _rows(case, tuple(folders.values()), tuple(folders))
    root = data_folder()
    folders = [root / "audio_digits" / corpus for corpus in ("audiomnist", "fsdd")]
    data = folder_digests(folders, "*.flac", root)
    update(results / f"{NAME}.json", NAME, rows, data=data, spec=specs)


def _rows(case: str, folders: Sequence[Path], seeds: Sequence[int]) -> Iterator[Row]:
    tasks = [load_bundle(folder) for folder in folders]
    for part, about in PARTS.items():
        examples = list[Example](spoken_digits.part(part))
        found = [task.evaluate(examples) for task in tasks]
        wer = [each.value for each in found]
        print(case, part, [round(value, 2) for value in wer], flush=True)
        yield mean_row(f"{case}: WER, {about}", wer, "%", seeds)
        exact = [each.statistics["exact_match"].value for each in found]
        yield mean_row(f"{case}: strings right, {about}", exact, "%", seeds)
    if spoken_digits.SYSTEMS[case].get("ctc"):
        yield from _boundary_rows(case, tasks, seeds)
    parameters = sum(weights.numel() for weights in tasks[0].model.parameters())
    yield Row(name=f"{case}: parameters", value=parameters, unit="", seeds=tuple(seeds))
    minutes = [Cost.load(folder).processor_minutes for folder in folders]
    yield mean_row(f"{case}: CPU minutes", minutes, "min", seeds)


def _boundary_rows(
    case: str, tasks: Sequence[AbstractTask[Any]], seeds: Sequence[int]
) -> Iterator[Row]:
    tasks = [task for task in tasks if isinstance(task, Transcription)]
    lags = [1000 * median(_boundary_errors(task, "dev")) for task in tasks]
    yield mean_row(f"{case}: lag of boundaries", lags, "ms", seeds)
    errors = [
        [abs(1000 * error - lag) for error in _boundary_errors(task, "test")]
        for task, lag in zip(tasks, lags, strict=True)
    ]
    for name, average in (("mean", mean), ("median", median)):
        found = [average(each) for each in errors]
        yield mean_row(f"{case}: {name} error of boundaries", found, "ms", seeds)
    for limit in WITHIN:
        shares = [100 * mean(error <= limit for error in each) for each in errors]
        yield mean_row(f"{case}: boundaries within {limit} ms", shares, "%", seeds)


def _boundary_errors(task: Transcription, part: str) -> list[float]:
    """Return the time, in seconds, from the middle of each pause to its estimate: the middle between the spans of the digits
    before and after it.
    """
    errors = list[float]()
    file = Path(spoken_digits.part(part).paths[0])
    for line in file.read_text(encoding="utf-8").splitlines():
        name, text, joins = line.split("\t")
        known = [tuple(map(float, span.split("-"))) for span in joins.split()]
        found = task.spans(Example(str(file.parent / name), text))
        pairs = zip(pairwise(known), pairwise(found), strict=True)
        for ((_, end), (start, _)), (before, after) in pairs:
            errors.append((before.end + after.start) / 2 - (end + start) / 2)
    return errors

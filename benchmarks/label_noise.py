"""Estimate how many errors in transliteration are errors of the file, not of the model.

    python -m benchmarks.label_noise find       answers of the pretrained models, and the errors to judge
    python -m benchmarks.label_noise count      counts the verdicts

`find` writes the most confident errors of each script and a random sample of all errors to results/label_noise.tsv, where
a reader fills in the last column. Verdicts of earlier runs stay. The verdicts:

    file     the spelling of the file belongs to another name, or lacks or adds a part
    both     both are spellings of the name; the file has only one of them
    model    the model is wrong
    unclear  the reader cannot decide

`find` also computes the error rate by how often Wikidata has the spelling, the third column of the data: a spelling that
occurs once is more often wrong, or one of several, than a spelling that occurs ten times.
"""

import argparse
import csv
import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import foveal
from foveal.data import Example
from foveal.metrics import Statistics, exact_match, measure
from foveal.tasks import Evaluation, Prediction
from recipes.katakana import DATA, SCRIPTS, part

from .records._scoring import source_files
from .results import Results, ResultsError, Row, digests
from .shelf.__main__ import SHELF

MADE_BY = "python -m benchmarks.label_noise find"
FIGURES, TABLE = "label_noise.json", "label_noise.tsv"
MODELS = dict(zip(SCRIPTS, ("ja", "ar", "zh", "he", "ko", "ru"), strict=True))
SAMPLES = ("most confident", "random")
MOST_CONFIDENT, AT_RANDOM = 34, 20  # of each script: 204 and 120 errors to judge
VERDICTS = ("file", "both", "model", "unclear")
ALL = "all scripts"
# How often Wikidata has a spelling: names of the slices and their bounds.
COUNTS = (("once", 1, 1), ("2 to 4 times", 2, 4), ("5 times or more", 5, 10**9))


class Judged(NamedTuple):
    """An error with the verdict of a reader, empty before it is judged."""

    sample: str  # "most confident" or "random"
    script: str
    source: str
    file: str
    model: str
    verdict: str = ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the subcommand that the first argument names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_noise")
    parser.add_argument("what", choices=("find", "count"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if given.what == "find":
        find(given.results)
    else:
        count(given.results)


def find(results: Path) -> None:
    """Answer all test names, write the errors to judge, and the error rates by count."""
    rows, errors, data = list[Row](), list[Judged](), dict[str, str]()
    for script, language in MODELS.items():
        task, tests = foveal.load(SHELF / f"models/names-{language}"), part(script, "test")
        evaluation = task.evaluate(list(tests))
        print(f"{script}: {evaluation.value:.1f} % errors", flush=True)
        rows += _by_count(script, evaluation)
        errors += _to_judge(script, evaluation.mistakes)
        data |= digests(source_files(tests), DATA)
    _write(results / TABLE, _with_earlier_verdicts(errors, results / TABLE))
    found = Results.here(MADE_BY).continued_from(results / FIGURES, any_machine=True)
    replace(found.with_rows(rows), data=data).save(results / FIGURES)


def count(results: Path) -> None:
    """Count the verdicts, each as a fraction of the judged errors with its Wilson interval."""
    judged = [row for row in _read(results / TABLE) if row.verdict]
    rows = list[Row]()
    for sample in SAMPLES:
        of_sample = [row for row in judged if row.sample == sample]
        for script in (ALL, *SCRIPTS):
            given = [row.verdict for row in of_sample if script in (ALL, row.script)]
            for verdict in VERDICTS:
                matches = exact_match([verdict] * len(given), given)
                rows.append(_row(f"{sample}, {script}: {verdict}", matches))
    found = Results.here(MADE_BY).continued_from(results / FIGURES, any_machine=True)
    earlier = Results.load(results / FIGURES)
    replace(found.with_rows(rows), data=earlier.data).save(results / FIGURES)


def _by_count(script: str, evaluation: Evaluation) -> Iterator[Row]:
    """Yield the error rate of the names whose spelling occurs a given number of times in Wikidata."""
    (path,) = source_files(part(script, "test"))
    with gzip.open(path, "rt", encoding="utf-8") as file:
        counts = [int(line.rsplit("\t", 1)[1]) for line in file]
    main = evaluation.statistics[evaluation.main.name]
    for name, low, high in COUNTS:
        chosen = np.array([low <= times <= high for times in counts])
        yield _row(f"by count, {script}: {name}", main.subset(chosen))


def _to_judge(script: str, mistakes: Sequence[tuple[Example, str, Prediction]]) -> Iterator[Judged]:
    """Yield the most confident errors, and a sample of all errors."""
    samples = mistakes[:MOST_CONFIDENT], random.Random(1).sample(mistakes, AT_RANDOM)
    for name, rows in zip(SAMPLES, samples, strict=True):
        for example, reference, answer in rows:
            spellings = (text.replace(" ", "") for text in (reference, answer.output))
            yield Judged(name, script, str(example.source), *spellings)


def _with_earlier_verdicts(errors: Sequence[Judged], path: Path) -> Iterator[Judged]:
    """Yield the errors with the verdicts that the file already has."""
    earlier = _read(path) if path.exists() else []
    verdicts = {row[1:5]: row.verdict for row in earlier}
    for row in errors:
        yield row._replace(verdict=verdicts.get(row[1:5], ""))


def _read(path: Path) -> list[Judged]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [Judged(**row) for row in csv.DictReader(file, delimiter="\t")]
    for row in rows:
        if row.verdict not in ("", *VERDICTS):
            raise ResultsError(
                f"{path}: the verdict on {row.source} must be one of {', '.join(VERDICTS)} or empty, got {row.verdict!r}."
            )
    return rows


def _write(path: Path, rows: Iterable[Judged]) -> None:
    lines = ["\t".join(row) + "\n" for row in (Judged._fields, *rows)]
    path.write_text("".join(lines), encoding="utf-8")


def _row(name: str, statistics: Statistics) -> Row:
    """Return a percentage with its Wilson interval."""
    metric = measure(statistics)
    return Row(name=name, value=metric.value, unit="%", spread=(metric.low, metric.high))


if __name__ == "__main__":
    main()

"""Measure the scores and CPU minutes of `foveal fit` on tagged files without any configuration.

    python -m benchmarks.tagging_defaults                     both corpora, some ten CPU minutes
    python -m benchmarks.tagging_defaults --case names        one of them
    python -m benchmarks.tagging_defaults --keep runs         existing runs are not repeated

names: WNUT-17, named entities in messages, by span F1 on the development set (one number, the score of the
tag O, is tuned on it; the published test set is not used). speech: UD English EWT, universal part-of-speech
tags, by accuracy on the test set. The command runs in one process with one thread, and its CPU time covers
training, validation, scoring and the report.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from examples.support import DATA

from .results import Results, Row, digest

OUT = Path("results/tagging_defaults.json")
MOST_MINUTES = 10.0


class Case(NamedTuple):
    """A corpus and its score."""

    name: str
    train: str
    dev: str
    test: str | None
    part: str  # "dev" or "test", the set to score
    metric: str
    target: float


WNUT, EWT = "wnut17_ner", "ud_english_ewt/en_ewt-ud"
CASES = {
    "names": Case(
        "WNUT-17, span F1 on the development set",
        f"{WNUT}/wnut17train.conll.gz",
        f"{WNUT}/emerging.dev.conll",
        None,
        "dev",
        "span_f1",
        35.0,
    ),
    "speech": Case(
        "UD English EWT, accuracy of part-of-speech tags on the test set",
        f"{EWT}-train.conllu.gz",
        f"{EWT}-dev.conllu.gz",
        f"{EWT}-test.conllu.gz",
        "test",
        "accuracy",
        94.5,
    ),
}


def fitted(case: Case, seed: int, run: Path) -> tuple[float, float]:
    """Return the score of the command and its CPU minutes."""
    minutes = run / "cpu_minutes.json"
    if not minutes.exists():
        words = [str(DATA / case.train), "--dev", str(DATA / case.dev), "--out", str(run)]
        words += [] if case.test is None else ["--test", str(DATA / case.test)]
        words += ["--seed", str(seed), "--fresh"]
        before = _children()
        subprocess.run(
            [sys.executable, "-m", "foveal.cli", "fit", *words],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=True,
        )
        minutes.write_text(json.dumps((_children() - before) / 60), encoding="utf-8")
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    return metrics[case.part][case.metric]["value"], json.loads(minutes.read_text("utf-8"))


def _children() -> float:
    """Return the CPU seconds of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit each corpus with each seed and write scores and CPU minutes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", choices=CASES, action="append", help="by default all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--keep", type=Path, help="leave the runs here; by default nowhere")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    names = given.case or list(CASES)
    files = [f for name in CASES for f in CASES[name][1:4] if f is not None]
    data = {file: digest(DATA / file) for file in files}
    results = replace(Results.here("python -m benchmarks.tagging_defaults"), data=data)
    results = results.continued_from(given.out)
    with tempfile.TemporaryDirectory(prefix="tagging") as temporary:
        for name in names:
            case, runs = CASES[name], given.keep or Path(temporary)
            found = [fitted(case, seed, runs / f"{name}_{seed}") for seed in given.seeds]
            results = results.with_rows(_rows(case, found, tuple(given.seeds)))
            results.save(given.out)


def _rows(case: Case, found: Sequence[tuple[float, float]], seeds: tuple[int, ...]) -> list[Row]:
    scores, minutes = zip(*found, strict=True)
    return [
        Row(
            name=case.name,
            value=sum(scores) / len(scores),
            unit="%",
            spread=(min(scores), max(scores)),
            seeds=seeds,
            target=case.target,
            sense=">=",
        ),
        Row(
            name=f"{case.name}: CPU minutes",
            value=sum(minutes) / len(minutes),
            unit="min",
            spread=(min(minutes), max(minutes)),
            seeds=seeds,
            target=MOST_MINUTES,
            sense="<=",
        ),
    ]


if __name__ == "__main__":
    main()

"""How good are the models that `foveal fit` trains on four kinds of file, given only the files?

    python -m benchmarks.first_models                    all of them, about an hour on two cores
    python -m benchmarks.first_models icelandic --seeds 1 2 3

Each case runs the command of docs/first_model.md on other files: pronunciation (800 and 8,000 words),
transliteration (26,406 names), classification (label as target) and translation (two line-aligned files).
Scores are on the test file. The spread is the 95 % interval for a single seed, and the lowest and highest
score for several seeds.

The target of a calibration error is 0.05, or, if so few test words cannot show it, the error that a perfectly calibrated
model with the same confidences exceeds in one of twenty test sets of this size.
"""

import argparse
import io
import json
import random
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from examples.support import DATA
from foveal.bundles import load_bundle
from foveal.cli._main import main as foveal
from foveal.data import open_source
from foveal.metrics._reliability import calibration_error

from .results import Results, Row, Sense, digest

OUT = Path("results/first_models.json")
CALIBRATION = "calibration error"
EXCEEDED = f"{CALIBRATION} that chance alone exceeds in one of twenty test sets"
NUM_DRAWS = 1000  # of the words that perfectly calibrated models get right


class Files(NamedTuple):
    """The training, development and test files that the command gets."""

    train: tuple[Path, ...]
    dev: tuple[Path, ...]
    test: tuple[Path, ...]


class Case(NamedTuple):
    """One kind of file."""

    title: str
    files: Callable[[Path], Files]
    data: tuple[str, ...]  # the original files, below the data folder
    targets: dict[str, tuple[float, Sense]]  # by the name of a score
    seeds: tuple[int, ...] = (1,)


def icelandic(folder: Path) -> Files:
    """SIGMORPHON 2021, low resource."""
    return _copied(folder, "g2p_sigmorphon2021/low/ice_{}.tsv", ("train", "dev", "test"))


def hungarian(folder: Path) -> Files:
    """SIGMORPHON 2021, medium: a thousand test words, enough to measure calibration."""
    return _copied(folder, "g2p_sigmorphon2021/medium/hun_{}.tsv", ("train", "dev", "test"))


def korean_names(folder: Path) -> Files:
    """Names of people, Latin to Korean script (Merhav and Ash 2018): 64 %, 16 % and 20 %."""
    return _copied(folder, "translit_coling2018/wd_korean_{}.gz", ("64", "16", "20"))


def tanaka(folder: Path) -> Files:
    """Japanese to English, two files for each part."""
    sides = [
        _copied(folder / side, f"enja_tanaka50k/{{}}.{side}", ("train", "dev", "test"))
        for side in ("ja", "en")
    ]
    return Files(*(a + b for a, b in zip(*sides, strict=True)))


def polarity(folder: Path) -> Files:
    """Positive and negative sentences, shuffled and split into 80 %, 10 % and 10 %."""
    lines: list[str] = []
    with zipfile.ZipFile(DATA / "sentence_polarity/sentence_polarity.zip") as archive:
        for label in ("neg", "pos"):
            with archive.open(f"sentence_polarity/rt-polarity.{label}") as file:
                text = io.TextIOWrapper(file, encoding="latin-1")
                lines += [f"{line.strip()}\t{label}\n" for line in text]
    random.Random(0).shuffle(lines)
    size = len(lines) // 10
    parts = {"dev": lines[:size], "test": lines[size : 2 * size], "train": lines[2 * size :]}
    for name, some in parts.items():
        (folder / f"{name}.tsv").write_text("".join(some), encoding="utf-8")
    return Files(*((folder / f"{name}.tsv",) for name in ("train", "dev", "test")))


CASES = {
    "icelandic": Case(
        "pronunciation, Icelandic, 800 words",
        icelandic,
        tuple(f"g2p_sigmorphon2021/low/ice_{part}.tsv" for part in ("train", "dev", "test")),
        {"wer": (18.0, "<="), CALIBRATION: (0.05, "<="), "minutes": (5.0, "<=")},
        seeds=(1, 2, 3, 4, 5),
    ),
    "hungarian": Case(
        "pronunciation, Hungarian, 8,000 words",
        hungarian,
        tuple(
            f"g2p_sigmorphon2021/medium/hun_{part}"
            for part in ("train.tsv.gz", "dev.tsv", "test.tsv")
        ),
        {CALIBRATION: (0.05, "<=")},
    ),
    "polarity": Case(
        "classification, 8,530 sentences, label as target",
        polarity,
        ("sentence_polarity/sentence_polarity.zip",),
        {CALIBRATION: (0.05, "<=")},
    ),
    "korean": Case(
        "transliteration, Latin to Korean, 26,406 names",
        korean_names,
        tuple(f"translit_coling2018/wd_korean_{part}.gz" for part in (64, 16, 20)),
        {},
    ),
    "tanaka": Case(
        "translation, Japanese to English, 50,000 sentences",
        tanaka,
        tuple(f"enja_tanaka50k/train.{side}.gz" for side in ("ja", "en")),
        {},
    ),
}


def measure(case: Case, seeds: Sequence[int], keep: Path | None = None) -> list[Row]:
    """Return the rows of one kind of file; the run of the first seed is kept in `keep`."""
    found: dict[str, list[float]] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for seed in seeds:
        folder = Path(tempfile.mkdtemp(prefix="first_models"))
        try:
            scores = _fitted(case.files(folder), folder / "run", seed)
            if keep is not None and seed == seeds[0]:
                shutil.copytree(folder / "run", keep)
        finally:
            shutil.rmtree(folder)
        for name, (value, interval) in scores.items():
            found.setdefault(name, []).append(value)
            if interval is not None:
                intervals[name] = interval
    targets = dict(case.targets)
    if CALIBRATION in targets and EXCEEDED in found:
        least, sense = targets[CALIBRATION]
        targets[CALIBRATION] = max(least, mean(found[EXCEEDED])), sense
    rows = []
    for name, values in found.items():
        target, sense = targets.get(name, (None, None))
        several = (min(values), max(values)) if len(values) > 1 else intervals.get(name)
        rows.append(
            Row(
                name=f"{case.title}: {name}",
                value=mean(values),
                unit=_unit(name),
                spread=several,
                seeds=tuple(seeds),
                target=target,
                sense=sense,
            )
        )
    return rows


def by_chance(confidence: Float[np.ndarray, " N"], num_draws: int = NUM_DRAWS) -> float:
    """Compute the 95 % quantile of the calibration error of a perfectly calibrated model with these confidences."""
    confidence = np.sort(confidence)
    draws = np.random.default_rng(0).random((num_draws, len(confidence)))
    return float(np.quantile([calibration_error(confidence, d < confidence) for d in draws], 0.95))


def _fitted(
    files: Files, run: Path, seed: int
) -> dict[str, tuple[float, tuple[float, float] | None]]:
    """Run the command and return the scores on the test file and the cost of training."""
    words = ["fit", *map(str, files.train), "--dev", *map(str, files.dev)]
    began = time.perf_counter()
    foveal([*words, "--out", str(run), "--seed", str(seed)])
    minutes = (time.perf_counter() - began) / 60
    task = load_bundle(run)
    source = open_source(files.test[0], files.test[1] if len(files.test) > 1 else None).source
    evaluation = task.evaluate(list(source))
    scores: dict[str, tuple[float, tuple[float, float] | None]] = {
        name: (metric.value, (metric.low, metric.high))
        for name, metric in evaluation.metrics.items()
    }
    if evaluation.reliability is not None:
        scores[CALIBRATION] = evaluation.reliability.ece, None
        scores[f"{CALIBRATION} by chance alone"] = evaluation.reliability.chance, None
        sure = np.array([answer.confidence for answer in evaluation.predictions])
        scores[EXCEEDED] = by_chance(sure), None
    scores["minutes"] = minutes, None
    facts = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    scores["share of time in validations"] = 100 * facts["share_of_validation"], None
    return scores


def _unit(name: str) -> str:
    if name == "minutes":
        return "min"
    return "ECE" if name.startswith("calibration") else "%" if name != "bleu" else "BLEU"


def _copied(folder: Path, pattern: str, names: Sequence[str]) -> Files:
    """Copy the files to a separate folder, where the command cannot find any other file."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in names:
        path = DATA / pattern.format(name)
        path = path if path.exists() else path.with_name(path.name + ".gz")
        paths.append(Path(shutil.copy(path, folder)))
    return Files(*((path,) for path in paths))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, score and write; earlier rows that are not measured again are kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="by default all")
    parser.add_argument("--seeds", type=int, nargs="+", help="by default those of the case")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--keep", type=Path, help="leave the runs here, in folders by name of case")
    given = parser.parse_args(arguments)
    results = Results.here("python -m benchmarks.first_models").continued_from(given.out)
    data = dict(Results.load(given.out).data) if given.out.exists() else {}
    for name in given.cases or CASES:
        case = CASES[name]
        keep = None if given.keep is None else given.keep / name
        rows = measure(case, given.seeds or case.seeds, keep)
        data |= {path: digest(DATA / path) for path in case.data}
        results = replace(results.with_rows(rows), data=data)
        results.save(given.out)
        for row in rows:
            print(f"{row.name}: {row.value:.3f} {row.unit} {row.spread or ''}")


if __name__ == "__main__":
    main()

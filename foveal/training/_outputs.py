"""The files that a run saves next to its weights.

metrics.json    scores on the validation set with their intervals, and the cost of the run
samples.tsv     source, expected output, output, score and confidence for each example
curves.svg      loss, score, learning rate, gradient norm
"""

import csv
import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ..metrics._intervals import Metric
from ..tasks import Evaluation
from .checkpoints._whole import replace_text
from .events._curves import draw_curves

LOG = "log.jsonl"
_METRICS = "metrics.json"
_SAMPLES = "samples.tsv"
_MAX_SAMPLES = 1000


def write_outputs(folder: Path, found: Mapping[str, Evaluation], facts: dict[str, Any]) -> None:
    """Write the files of a finished run.

    Args:
        folder: The folder of the run, which contains its log.
        found: Evaluations by the name of their set, dev and test.
        facts: Further entries of metrics.json.
    """
    content: dict[str, Any] = {
        name: {metric: score._asdict() for metric, score in evaluation.metrics.items()}
        for name, evaluation in found.items()
    }
    baselines = {
        name: evaluation.baseline._asdict()
        for name, evaluation in found.items()
        if evaluation.baseline is not None
    }
    text = json.dumps({**content, "baselines": baselines, **facts}, indent=1, ensure_ascii=False)
    replace_text(folder / _METRICS, text + "\n")
    if "dev" in found:
        _write_samples(samples_file(folder), found["dev"])
    draw_curves(folder / LOG, folder / "curves.svg")


def scores_of(folder: Path) -> dict[str, dict[str, Metric]]:
    """Return the scores that a run has saved, by set and by metric."""
    content = json.loads((folder / _METRICS).read_text(encoding="utf-8"))
    return {
        name: {metric: Metric(**score) for metric, score in content[name].items()}
        for name in ("dev", "test")
        if name in content
    }


def samples_file(folder: Path) -> Path:
    """Return the path of the samples in the folder of a run, which may not exist."""
    return folder / _SAMPLES


def sample_sources(folder: Path, most: int) -> list[str]:
    """Return the sources of the first samples that a run has saved, or an empty list."""
    path = samples_file(folder)
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = islice(csv.DictReader(file, delimiter="\t"), most)
        return [source for row in rows if (source := row.get("source"))]


def _write_samples(path: Path, evaluation: Evaluation) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        writer.writerow(["source", "expected", "output", "score", "confidence"])
        for source, expected, found in evaluation.samples(_MAX_SAMPLES):
            numbers = (f"{found.score:.4f}", f"{found.confidence:.4f}")
            writer.writerow([source, expected, found.output, *numbers])

"""Train the two small models of the product pictures, and store them in results/product.

    python scripts/product_models.py      ten minutes on one core

`pronunciation` is a small model of the sample that `foveal demo` trains on. `hasty` has a learning rate that is far too
high, for the page of the doctor. The models are stored because weights that are trained on another processor differ.
Run `python scripts/product_pictures.py` afterward.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from foveal.cli._main import main as foveal

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "results/product"
SAMPLE = (
    "foveal/datasets/samples/pronunciation"  # relative, because a run stores the paths of its files
)
KEPT = (
    "calibration.json",
    "choices.json",
    "manifest.json",
    "metrics.json",
    "run.json",
    "spec.json",
    "vocabulary.json",
    "weights.safetensors",
)
MOST_STEPS = 150  # that a stored log contains
BOTH = ("task.model.encoder", "task.model.decoder")
SETTINGS: dict[str, Mapping[str, str]] = {
    "pronunciation": {
        **{f"{part}.hidden_size": "48" for part in BOTH},
        **{f"{part}.embedding_size": "32" for part in BOTH},
        **{f"{part}.dropout": "0.2" for part in BOTH},
        "training.epochs": "40",
    },
    "hasty": {
        **{f"{part}.hidden_size": "16" for part in BOTH},
        **{f"{part}.embedding_size": "16" for part in BOTH},
        "training.steps": "150",
        "training.learning_rate": "3.0",
    },
}


def train(name: str, folder: Path) -> None:
    """Train a model as a user would, on one thread."""
    train, dev, test = (f"{SAMPLE}/{part}.tsv" for part in ("train", "dev", "test"))
    words = [train, "--dev", dev, "--test", test, "--out", str(folder), "--threads", "1"]
    for path, value in SETTINGS[name].items():
        words += ["--set", f"{path}={value}"]
    foveal(["fit", *words])


def store(folder: Path, out: Path) -> None:
    """Copy the files of a run that pages need, with fewer steps in its log."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name in KEPT:
        shutil.copyfile(folder / name, out / name)
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    events = [json.loads(line)["event"] for line in lines]
    steps = [index for index, event in enumerate(events) if event == "step_done"]
    left_out = set(steps) - set(steps[:: -(-len(steps) // MOST_STEPS)]) - {steps[-1]}
    kept = (
        line
        for index, line in enumerate(lines)
        if index not in left_out
        and events[index] != "checkpointed"  # which has paths of this machine
    )
    (out / "log.jsonl").write_text("".join(kept), encoding="utf-8")


def main() -> None:
    """Train and store both models."""
    os.chdir(ROOT)
    for name in SETTINGS:
        with tempfile.TemporaryDirectory() as folder:
            train(name, Path(folder) / name)
            store(Path(folder) / name, OUT / name)


if __name__ == "__main__":
    main()

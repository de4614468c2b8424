"""Measure how each default of `foveal fit` changes the error rate on development words.

    python -m benchmarks.defaults                        about half an hour on one core
    python -m benchmarks.defaults --keep runs            existing runs are not repeated

Pronunciation, SIGMORPHON 2021, 800 words of each of four languages; every row changes one setting of
`foveal fit`. Test words are not used. With 100 development words per language, differences of about two
points between rows are noise.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from examples.support import DATA
from foveal.cli._main import main as foveal

from .results import Results, Row, digest

OUT = Path("results/defaults.json")
FOLDER = "g2p_sigmorphon2021/low"
LANGUAGES = ("ice", "gre", "ita", "rum")
SEED = 1


def _both(name: str, value: str) -> tuple[str, str]:
    """Return one setting for the encoder and the decoder."""
    return f"encoder.{name}={value}", f"decoder.{name}={value}"


CHANGES: dict[str, tuple[str, ...]] = {
    "as chosen": (),
    "softmax attention": ("decoder.attention=softmax",),
    "twice as wide": _both("hidden_size", "256"),
    "dropout 0.2": _both("dropout", "0.2"),
    "dropout 0.5": _both("dropout", "0.5"),
    "no label smoothing": ("label_smoothing=0",),
    "half as long": ("training.epochs=50",),
}


def error_rate(train: Path, dev: Path, settings: Sequence[str], run: Path) -> float:
    """Return the WER on the development words of a run, which is fitted unless it exists."""
    if not (run / "metrics.json").exists():
        changes = [word for setting in settings for word in ("--set", setting)]
        words = ["fit", str(train), "--dev", str(dev), "--out", str(run), "--seed", str(SEED)]
        foveal([*words, *changes])
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    return metrics["dev"]["wer"]["value"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit all variants and write their error rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", type=Path, help="leave the runs here; by default nowhere")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    runs = given.keep or Path(tempfile.mkdtemp(prefix="defaults"))
    files = [f"{FOLDER}/{name}_{part}.tsv" for name in LANGUAGES for part in ("train", "dev")]
    data = {file: digest(DATA / file) for file in files}
    results = replace(Results.here("python -m benchmarks.defaults"), data=data)
    try:
        for change, settings in CHANGES.items():
            found = [
                error_rate(
                    DATA / FOLDER / f"{name}_train.tsv",
                    DATA / FOLDER / f"{name}_dev.tsv",
                    settings,
                    runs / f"{name}_{change.replace(' ', '_')}",
                )
                for name in LANGUAGES
            ]
            row = Row(
                name=f"{change}: WER on the development words, mean of {len(found)} languages",
                value=mean(found),
                unit="%",
                spread=(min(found), max(found)),
                seeds=(SEED,),
            )
            results = results.with_rows([row])
            results.save(given.out)
    finally:
        if given.keep is None:
            shutil.rmtree(runs)


if __name__ == "__main__":
    main()

"""Which attention should read 800 words, if nothing else is said? By errors on the development words.

    python -m benchmarks.few_examples
    python -m benchmarks.few_examples --keep runs          runs that are there already are not repeated

Pronunciation, SIGMORPHON 2021, low resource; `sightline fit` with --attention and --seed and nothing
else. Test words are not looked at.
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
from sightline.cli import main as sightline

from .results import Results, Row, digest

OUT = Path("results/few_examples.json")
FOLDER = "g2p_sigmorphon2021/low"
SEEDS = {"ice": (1, 2, 3), "gre": (1,), "ita": (1,), "rum": (1,)}
ATTENTIONS = ("softmax", "exact_hard")


def error_rate(language: str, attention: str, seed: int, runs: Path) -> float:
    """WER on the development words."""
    run = runs / f"{language}_{attention}_{seed}"
    if not (run / "metrics.json").exists():
        train, dev = (str(DATA / FOLDER / f"{language}_{part}.tsv") for part in ("train", "dev"))
        words = ["fit", train, "--dev", dev, "--out", str(run)]
        sightline([*words, "--attention", attention, "--seed", str(seed)])
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    return metrics["dev"]["wer"]["value"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit each, and write the error rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", type=Path, help="leave the runs here; by default nowhere")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    runs = given.keep or Path(tempfile.mkdtemp(prefix="few_examples"))
    results = Results.here("python -m benchmarks.few_examples")
    try:
        for language, seeds in SEEDS.items():
            for attention in ATTENTIONS:
                found = [error_rate(language, attention, seed, runs) for seed in seeds]
                row = Row(
                    name=f"{language}, {attention}: WER on the development words",
                    value=mean(found),
                    unit="%",
                    spread=(min(found), max(found)),
                    seeds=seeds,
                )
                files = (f"{FOLDER}/{language}_{part}.tsv" for part in ("train", "dev"))
                data = {**results.data, **{path: digest(DATA / path) for path in files}}
                results = replace(results.with_rows([row]), data=data)
                results.save(given.out)
    finally:
        if given.keep is None:
            shutil.rmtree(runs)


if __name__ == "__main__":
    main()

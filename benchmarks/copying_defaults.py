"""Measure whether `foveal fit` should choose copying where source and target share their alphabet.

    python -m benchmarks.copying_defaults --keep runs       existing runs are not repeated

Inflection, SIGMORPHON 2023, three languages; a model that copies can write the letters of the lemma without learning
each of them. Every row is one setting of `foveal fit`, with 1,000 forms, for which `fit` chooses marginalized hard
attention (latent_hard), and with 10,000, for which it chooses copying with softmax attention, and a decoder that reads the
features at every step. Runs are shorter than the default. Test words are not used.
"""

import argparse
import gzip
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import mean

from examples.support import DATA

from .defaults import SEED, error_rate
from .results import Results, Row, digest

OUT = Path("results/copying_defaults.json")
FOLDER = "inflection_sigmorphon2023"
LANGUAGES = ("deu", "spa", "tur")
SOFTMAX = ("decoder.attention=softmax",)
# For each number of training forms: the number of epochs, and the settings to compare.
CASES: dict[int, tuple[int, dict[str, tuple[str, ...]]]] = {
    1_000: (
        30,
        {
            "as chosen, latent_hard": (),
            "softmax": SOFTMAX,
            "softmax, copying": (*SOFTMAX, "decoder.copy=true"),
        },
    ),
    10_000: (
        4,
        {
            "as chosen, copying": (),
            "copying, features only in the memory": ("decoder.bridge=initial_state",),
            "softmax": (
                "decoder.copy=false",
                "decoder.bridge=initial_state",
                "task.label_smoothing=0.1",
                "task.min_count=1",
            ),
        },
    ),
}


def write_part(language: str, part: str, most: int, path: Path) -> Path:
    """Write the first forms of a file with the columns in the order that `fit` expects: lemma, form, features."""
    if path.exists():
        return path
    source = DATA / FOLDER / f"{language}.{part}"
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    step = max(1, len(rows) // most)  # files are sorted by lemma, so take lines from all of it
    lines = [f"{lemma}\t{form}\t{tags}\n" for lemma, tags, form in islice(rows, 0, None, step)]
    path.write_text("".join(lines[:most]), encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit all variants and write their error rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", type=Path, required=True, help="the folder of the runs")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    files = [f"{FOLDER}/{name}.{part}" for name in LANGUAGES for part in ("trn.gz", "dev")]
    results = Results.here("python -m benchmarks.copying_defaults --keep runs")
    results = replace(results, data={file: digest(DATA / file) for file in files})
    for size, (epochs, changes) in CASES.items():
        for change, settings in changes.items():
            found = list[float]()
            for name in LANGUAGES:
                train = write_part(name, "trn.gz", size, given.keep / f"{name}_{size}.tsv")
                dev = write_part(name, "dev", 1_000, given.keep / f"{name}_dev.tsv")
                run = given.keep / f"{name}_{size}_{change.replace(', ', '_').replace(' ', '_')}"
                found.append(error_rate(train, dev, (*settings, f"training.epochs={epochs}"), run))
            row = Row(
                name=f"{size:,} forms, {change}: WER on the development words, mean of {len(found)} languages",
                value=mean(found),
                unit="%",
                spread=(min(found), max(found)),
                seeds=(SEED,),
            )
            print(row.name, found, flush=True)
            results = results.with_rows([row])
            results.save(given.out)


if __name__ == "__main__":
    main()

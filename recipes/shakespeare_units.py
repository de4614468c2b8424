"""A small character language model whose units are worth looking at (Karpathy et al. 2015).

    foveal fit --recipe recipes/shakespeare_units.py --out runs/units
    foveal explain runs/units "ROMEO: O, she doth teach the torches to burn bright!" --unit decoder:cell
    python -m benchmarks.lectures fit shakespeare_units --runs runs
    python -m benchmarks.lectures score shakespeare_units --runs runs

One LSTM of 128 units reads a million characters of Shakespeare for 800 updates, about a minute and less than an epoch.
`foveal data get tinyshakespeare` gets the text; its last lines are for development and for the pictures.
"""

import gzip
import os
from pathlib import Path

from foveal.data import CharacterSpec, SourceSpec, open_source
from foveal.datasets import data_file
from foveal.models import LanguageModelSpec
from foveal.tasks import LanguageModelingSpec
from foveal.training import Run, TrainingSpec

FOLDER = Path(__file__).resolve().parents[1] / ".cache/shakespeare"
CASES = ("lstm",)
NUM_DEV = 400  # lines


def recipe(case: str = "lstm") -> Run:
    """Return a run with one LSTM."""
    assert case in CASES
    return Run(
        task=LanguageModelingSpec(
            source=CharacterSpec(),
            model=LanguageModelSpec(embedding_size=32, hidden_size=128, dropout=0.0),
            bptt_length=64,
        ),
        train=part("train"),
        dev=part("dev"),
        training=TrainingSpec(steps=800, batch_size=32, learning_rate=4e-3, seed=1),
    )


def part(name: str) -> SourceSpec:
    """Return one of the parts, without empty lines; the last lines of the text are for development."""
    path = FOLDER / f"{name}.txt"
    if not path.exists():
        text = gzip.decompress(data_file("tinyshakespeare/input.txt.gz").read_bytes()).decode(
            "utf-8"
        )
        kept = [f"{line}\n" for line in text.splitlines() if line.strip()]
        FOLDER.mkdir(parents=True, exist_ok=True)
        # Write under another name first: two processes may write at once, and the files of both are the same.
        unfinished = path.with_suffix(f".{os.getpid()}")
        chosen = kept[-NUM_DEV:] if name == "dev" else kept[:-NUM_DEV]
        unfinished.write_text("".join(chosen), encoding="utf-8")
        unfinished.replace(path)
    return open_source(path).source

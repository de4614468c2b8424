"""Three losses on attention, each on and off: doubly stochastic, coverage, and supervised.

    foveal fit --recipe recipes/attention_losses.py:supervised --out runs/supervised
    python -m benchmarks.lectures fit attention_losses --runs runs                all cases, three seeds
    python -m benchmarks.lectures score attention_losses --runs runs

The task is formulas from prefix to infix notation, because the alignment of its tokens is known:

    ( * ( + 15 7 1 ) 4 )   becomes   ( 15 + 7 + 1 ) * 4

    off                 only the likelihood of the target
    doubly_stochastic   every source position is read once in total (Xu et al. 2015)
    coverage            no position is read again (See et al. 2017)
    supervised          attention is compared with the known alignment (Liu et al. 2016)

Each loss has weight 1, the value in the first two papers. In this task, an operator with three arguments is written
twice: a perfect alignment reads it twice, and the first two losses are only nearly right. The recipe draws 1,500
formulas of each depth from 2 to 4, and writes them once, into `.cache/aligned_formulas` of the checkout.
"""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from examples.support.formulas import draw_examples
from examples.support.known_alignments import Known, align_formula
from foveal.data import Example, TabSeparated, WhitespaceSpec, tsv
from foveal.models import BilinearSpec, DecoderSpec, Seq2SeqSpec, SoftmaxSpec, TextEncoderSpec
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

FOLDER = Path(__file__).resolve().parents[1] / ".cache/aligned_formulas"
DEPTHS = range(2, 5)
COUNTS = {"train": 1500, "dev": 60, "test": 200}  # of each depth
SEED = 1  # seed of the formulas, for every seed of a run
LOSSES: dict[str, dict[str, Any]] = {
    "off": {},
    "doubly_stochastic": {"doubly_stochastic": 1.0},
    "coverage": {"coverage": 1.0},
    "supervised": {"alignment_weight": 1.0},
}
CASES = tuple(LOSSES)


def recipe(case: str = "supervised") -> Run:
    """Return a run with a bidirectional LSTM, softmax attention and an LSTM: about a minute."""
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(),
            target=WhitespaceSpec(),
            outputs="texts",
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=32, hidden_size=64, dropout=0.1),
                decoder=DecoderSpec(
                    embedding_size=32,
                    hidden_size=128,
                    dropout=0.1,
                    attention=SoftmaxSpec(scorer=BilinearSpec()),
                ),
            ),
            label_smoothing=0.0,
            prediction=PredictionSpec(beam_size=1),
            **LOSSES[case],
        ),
        train=part("train"),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(
            steps=600, batch_size=64, learning_rate=4e-3, warmup_steps=100, seed=1
        ),
    )


off, doubly_stochastic, coverage, supervised = (partial(recipe, case) for case in CASES)


def part(name: str) -> TabSeparated:
    """Return one of the parts, with the alignment in the third column. The first call draws all parts."""
    path = FOLDER / f"{name}.tsv"
    if not path.exists():
        _write(FOLDER)
    return tsv(path, alignment=2)


def _write(folder: Path) -> None:
    """Draw all parts without duplicates; every call draws the same formulas."""
    chance, seen = Random(SEED), tuple[Example, ...]()
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in COUNTS.items():
        drawn = draw_examples(DEPTHS, count, chance, unlike=seen)
        seen += drawn
        # Write under another name first: two processes may write at once, and the files of both are the same.
        unfinished = folder / f"{name}.{os.getpid()}"
        lines = _lines(align_formula(example.text) for example in drawn)
        unfinished.write_text("".join(lines), encoding="utf-8")
        unfinished.replace(folder / f"{name}.tsv")


def _lines(pairs: Iterable[Known]) -> Iterable[str]:
    for example, gold in pairs:
        links = " ".join(f"{source}-{target}" for source, target in sorted(gold.sure))
        yield f"{example.source}\t{example.target}\t{links}\n"

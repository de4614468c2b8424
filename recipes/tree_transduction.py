"""Formulas from prefix to infix notation: trees in, trees out (Kim et al. 2017, section 4.1).

    ( * ( + 15 7 1 ) ( + 19 0 ) )   becomes   ( ( 15 + 7 + 1 ) * ( 19 + 0 ) )

    foveal fit --recipe recipes/tree_transduction.py --out runs/trees           or :simple, :none
    python -m benchmarks.lectures fit tree_transduction --runs runs                all cases, three seeds
    python -m benchmarks.lectures score tree_transduction --runs runs

A token is represented by its embedding and the expected embedding of its head. The heads are therefore the only
information about the order of the tokens that reaches the decoder.

    none          no heads: a bag of tokens
    simple        each token chooses its head independently, by a softmax
    structured    the heads form a projective tree

The recipe generates the formulas as in section 4.1: 5,000 of each depth from 2 to 4 for training, 1,000 of each
depth from 2 to 6 for the test. It writes them once, into `.cache/formulas` of the checkout.
"""

import os
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from random import Random

from examples.support.formulas import draw_examples
from foveal.data import Example, TabSeparated, WhitespaceSpec, tsv
from foveal.models import (
    BilinearSpec,
    DecoderSpec,
    HeadSelectionSpec,
    RecurrentSpec,
    SelfAttentionSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    SyntacticSpec,
    WordEncoderSpec,
)
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

FOLDER = Path(__file__).resolve().parents[1] / ".cache/formulas"
KNOWN, DEPTHS = range(2, 5), range(2, 7)
NUM_TRAIN, NUM_DEV, NUM_TEST = 5000, 200, 1000  # of each depth
SEED = 1  # seed of the formulas, for every seed of a run
HEADS: dict[str, SelfAttentionSpec | None] = {
    "none": None,
    "simple": HeadSelectionSpec(),
    "structured": SyntacticSpec(),
    "simple, bounded": HeadSelectionSpec(bounded=True),
    "structured, bounded": SyntacticSpec(bounded=True),
}
CASES = tuple(HEADS)


def recipe(case: str = "structured") -> Run:
    """Return a run with embeddings and heads, and an LSTM with attention and input feeding: minutes."""
    heads, size = HEADS[case], 100
    states = None if heads is None else RecurrentSpec(hidden_size=size, dropout=0.0)
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(),
            target=WhitespaceSpec(),
            outputs="texts",
            model=Seq2SeqSpec(
                encoder=WordEncoderSpec(
                    embedding_size=50, dropout=0.0, self_attention=heads, states=states
                ),
                decoder=DecoderSpec(
                    embedding_size=50,
                    hidden_size=size,
                    dropout=0.0,
                    attention=SoftmaxSpec(scorer=BilinearSpec()),
                    input_feeding=True,
                ),
            ),
            label_smoothing=0.0,
            prediction=PredictionSpec(beam_size=1),
        ),
        train=part("train"),
        dev=part("dev"),
        test=part(*(f"test_{depth}" for depth in DEPTHS)),
        training=TrainingSpec(
            steps=1500, batch_size=64, learning_rate=4e-3, warmup_steps=100, seed=1
        ),
    )


none, simple, structured = (partial(recipe, name) for name in ("none", "simple", "structured"))


def part(*names: str) -> TabSeparated:
    """Return files of formulas by name; write missing files first."""
    if not FOLDER.exists():
        write(FOLDER)
    return tsv([FOLDER / f"{name}.tsv" for name in names])


def write(folder: Path) -> None:
    """Draw all formulas without duplicates; every call draws the same formulas."""
    chance = Random(SEED)
    drawn = {"train": draw_examples(KNOWN, NUM_TRAIN, chance)}
    drawn["dev"] = draw_examples(KNOWN, NUM_DEV, chance, unlike=drawn["train"])
    seen = drawn["train"] + drawn["dev"]
    for depth in DEPTHS:
        drawn[f"test_{depth}"] = draw_examples([depth], NUM_TEST, chance, unlike=seen)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Write under another name first: two processes may write at once, and the files of both are the same.
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    unfinished.mkdir()
    for name, examples in drawn.items():
        (unfinished / f"{name}.tsv").write_text("".join(_lines(examples)), encoding="utf-8")
    try:
        unfinished.rename(folder)
    except OSError:
        shutil.rmtree(unfinished)


def _lines(examples: Iterable[Example]) -> Iterable[str]:
    """Add the outermost parentheses in infix notation, so every target starts with one. The paper's figures without
    heads suggest that its targets do too: one token of a formula is right.
    """
    for example in examples:
        yield f"{example.source}\t( {example.target} )\n"

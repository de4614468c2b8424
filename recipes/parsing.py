r"""Dependency parsing: UD English EWT and French Sequoia, gold words, no pretrained vectors.

    foveal fit --recipe recipes/parsing.py:ewt --out runs/ewt           or :sequoia
    foveal predict runs/ewt/best test.conllu --format conllu > parsed.conllu
    python -m benchmarks.parsing score --runs runs                      all seeds to results/parsing.json

The parser reads words and their characters. It learns the parts of speech of the training file as a second task
and is not given any at test time. `foveal data get ud_english_ewt
ud_french_sequoia` gets the data.

References: Dozat and Manning 2017, Deep biaffine attention for neural dependency parsing; Silveira et al. 2014
(EWT); Candito and Seddah 2012 (Sequoia).
"""

from functools import partial
from pathlib import Path

from foveal.data import SourceSpec, treebank
from foveal.datasets import data_folder
from foveal.tasks import ParsingSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
TREEBANKS = {"ewt": "ud_english_ewt/en_ewt", "sequoia": "ud_french_sequoia/fr_sequoia"}
# Sequoia has a sixth of the sentences of EWT: more epochs.
EPOCHS = {"ewt": 15.0, "sequoia": 30.0}


def recipe(name: str = "ewt") -> Run:
    """Return a run of a biaffine parser over spanning trees, with a BiLSTM of three layers."""
    return Run(
        task=ParsingSpec(),
        train=part(name, "train"),
        dev=part(name, "dev"),
        test=part(name, "test"),
        training=TrainingSpec(
            epochs=EPOCHS[name],
            batch_tokens=3200,  # 800 words: a word, its head, label and tag count as four positions
            learning_rate=2e-3,
            betas=(0.9, 0.9),
            warmup_steps=100,
            final_lr_ratio=0.02,
            clip_norm=5.0,
            seed=1,
        ),
    )


ewt, sequoia = (partial(recipe, name) for name in TREEBANKS)


def part(name: str, split: str) -> SourceSpec:
    """Return the training, validation or test data of a treebank."""
    return treebank(file(name, split))


def file(name: str, split: str) -> Path:
    """Return the path of one part of a treebank."""
    return DATA / f"{TREEBANKS[name]}-ud-{split}.conllu.gz"

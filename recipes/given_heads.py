r"""A small parser whose heads the words of entailment pairs read: the "hard parent" of Kim et al. 2017, table 4.

    foveal fit --recipe recipes/given_heads.py:parser --out .cache/given_heads/parser
    foveal fit --recipe recipes/entailment.py:sick_parent --out runs/sick_parent

The parser is trained on UD English EWT and then parses the two texts of each pair, as a pipeline: training for
entailment does not change it. The treebank is lowercased, because the pairs are. It has one recurrent layer and
reads no characters, so that it is trained in a few minutes; `recipes/parsing.py` has the accurate parser.

`foveal data get ud_english_ewt` gets the treebank.
"""

import gzip
from collections.abc import Iterable
from pathlib import Path

from foveal.bundles import load_bundle
from foveal.data import Example, SourceSpec, treebank
from foveal.models import ParserSpec
from foveal.tasks import ParsingSpec
from foveal.training import Run, TrainingSpec
from recipes import parsing
from recipes.whole_files import write_whole

FOLDER = Path(__file__).resolve().parents[1] / ".cache/given_heads"
PARSER = FOLDER / "parser"


def parser() -> Run:
    """Return a run of a small parser of lowercase English."""
    return Run(
        task=ParsingSpec(
            model=ParserSpec(num_layers=1, hidden_size=150, arc_size=150, dropout=0.2),
            num_characters=0,
            tag_weight=0.0,
        ),
        train=part("train"),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(
            epochs=4.0,
            batch_tokens=2400,  # 800 words: a word, its head and label count as three positions
            learning_rate=4e-3,
            betas=(0.9, 0.9),
            warmup_steps=100,
            final_lr_ratio=0.02,
            clip_norm=5.0,
            seed=1,
        ),
    )


def headed(texts: Iterable[str]) -> dict[str, str]:
    """Parse texts with the trained parser, and return each with the heads of its words, such as `they:2 buy:0`."""
    if not PARSER.exists():
        raise FileNotFoundError(
            f"{PARSER}: expected the parser, got no folder. Train it with: foveal fit --recipe "
            f"recipes/given_heads.py:parser --out {PARSER}"
        )
    task, different = load_bundle(PARSER), sorted(set(texts))
    found = task.predict([Example(text) for text in different])
    return {
        text: " ".join(map(_headed, text.split(), each.output.split()))
        for text, each in zip(different, found, strict=True)
    }


def _headed(word: str, arc: str) -> str:
    return f"{word}:{arc.partition(':')[0]}"


def part(split: str) -> SourceSpec:
    """Return a part of the treebank, lowercased; the first call writes the file."""
    path = FOLDER / f"ewt_{split}.conllu"
    if not path.exists():
        with gzip.open(parsing.file("ewt", split), "rt", encoding="utf-8") as file:
            write_whole(path, (line if line.startswith("#") else line.lower() for line in file))
    return treebank(path)

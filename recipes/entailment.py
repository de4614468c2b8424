r"""Entailment with self-attention: words read their expected heads, in a tree or without one.

    foveal fit --recipe recipes/entailment.py:sick_tree --out runs/sick
    python -m benchmarks.lectures fit entailment --runs runs                both corpora, three seeds
    python -m benchmarks.lectures score entailment --runs runs

A case is a corpus and the additional vector of each word in the comparison of texts (decomposable attention,
Parikh et al. 2016):

    none            nothing
    soft            its expected head, by a softmax over all words
    tree            its expected head, in a projective dependency tree (Kim et al. 2017)
    parent          its head, given by a parser ("hard parent"); see recipes/given_heads.py
    soft_bounded    as soft and tree, with scores between -1 and 1 as in the code of that paper. The limit keeps
    tree_bounded    a softmax over 20 words below 0.28, but a tree can still be sharp

Three more cases are recurrent networks over both texts, the second after the first (Rocktäschel et al. 2016):

    conditional     only the state connects the texts
    last_word       the last state of the second text attends to the first
    word_by_word    every word of the second text attends to the first

`sick` has its own split. The training file of SNLI is not available here, so `snli` is trained on other corpora:
counterfactual pairs made from SNLI (Kaushik et al. 2020), repeated three times, and development pairs of MultiNLI, JOCI
and MPE. Pairs whose first text is in the SNLI development or test file are left out. There are no pretrained vectors. The
paper uses them and reports 85.8 to 86.8 on SNLI, so compare the figures here only with each other.

`foveal data get sick_nli snli_dev_test cad_nli nli_extra` gets the data. The recipe writes the texts
once, lowercased and tokenized, into `.cache/entailment` of the checkout.
"""

import csv
import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from foveal.data import LineReader, TabSeparated, WhitespaceSpec, tsv
from foveal.datasets import data_folder
from foveal.models import (
    DecomposableAttentionSpec,
    GivenHeadsSpec,
    HeadSelectionSpec,
    RecurrentSpec,
    SelfAttentionSpec,
    SyntacticSpec,
    WordByWordSpec,
    WordEncoderSpec,
)
from foveal.tasks import PairClassificationSpec
from foveal.training import Run, TrainingSpec
from recipes import given_heads
from recipes.whole_files import write_whole

ROOT = Path(__file__).resolve().parents[1]
DATA = data_folder()
FOLDER = ROOT / ".cache/entailment"
HEADS: dict[str, SelfAttentionSpec | None] = {
    "none": None,
    "soft": HeadSelectionSpec(hidden_size=64),
    "tree": SyntacticSpec(hidden_size=64, single_root=False),
    "soft_bounded": HeadSelectionSpec(hidden_size=64, bounded=True),
    "tree_bounded": SyntacticSpec(hidden_size=64, single_root=False, bounded=True),
}
# Recurrent networks over both texts, the second after the first, and the words of the second that read the first.
READERS: dict[str, Literal["every_word", "last_word", "nothing"]] = {
    "conditional": "nothing",
    "last_word": "last_word",
    "word_by_word": "every_word",
}
# The corpora that replace SNLI have more than ten times the pairs of SICK: fewer epochs with larger batches.
TRAINING = {
    "sick": TrainingSpec(epochs=10.0, batch_size=32, learning_rate=2e-3, seed=1),
    "snli": TrainingSpec(epochs=3.0, batch_size=64, learning_rate=2e-3, seed=1),
}
CORPORA = tuple(TRAINING)
PARENT = "parent"
CASES = tuple(f"{corpus}_{form}" for corpus in CORPORA for form in (*HEADS, PARENT, *READERS))
EXTRA = ("mnli/dev", "joci/train", "joci/dev", "mpe/train", "mpe/dev")
SICK = {"train": "train.txt.gz", "dev": "trial.txt", "test": "test_annotated.txt.gz"}
LABELS = ("entailment", "neutral", "contradiction")
COUNTED = 3  # repetitions of a counterfactual pair: only these pairs are made from SNLI
LONGEST = 60  # words of a text in the training pairs that replace SNLI
_WORD = re.compile(r"\w+|[^\w\s]")
_PICTURE = re.compile(r"\d+jpg\d")  # the name of a picture, before each of its captions in MPE


class Pair(NamedTuple):
    """Two texts, lowercase with spaces between words and punctuation, and a label."""

    first: str
    second: str
    label: str


def recipe(case: str = "sick_tree") -> Run:
    """Return a run with the model of a case."""
    corpus, _, form = case.partition("_")
    return Run(
        task=PairClassificationSpec(source=WhitespaceSpec(), min_count=2, model=model(form)),
        train=part(corpus, "train", headed=form == PARENT),
        dev=part(corpus, "dev", headed=form == PARENT),
        test=part(corpus, "test", headed=form == PARENT),
        training=TRAINING[corpus],
    )


def model(form: str) -> DecomposableAttentionSpec | WordByWordSpec:
    """Return decomposable attention with or without heads, or recurrent networks with or without attention."""
    if form in READERS:
        return WordByWordSpec(embedding_size=64, hidden_size=64, dropout=0.1, readers=READERS[form])
    if form == PARENT:
        words = WordEncoderSpec(embedding_size=64, dropout=0.0)
        return DecomposableAttentionSpec(encoder=GivenHeadsSpec(encoder=words), hidden_size=64)
    attention = HEADS[form]
    return DecomposableAttentionSpec(
        encoder=WordEncoderSpec(
            embedding_size=64,
            dropout=0.0,
            self_attention=attention,
            states=None if attention is None else RecurrentSpec(hidden_size=32, dropout=0.0),
        ),
        hidden_size=64,
    )


# fmt: off
(sick_none, sick_soft, sick_tree, sick_soft_bounded, sick_tree_bounded, sick_parent,
 sick_conditional, sick_last_word, sick_word_by_word) = (
    partial(recipe, case) for case in CASES if case.startswith("sick"))
(snli_none, snli_soft, snli_tree, snli_soft_bounded, snli_tree_bounded, snli_parent,
 snli_conditional, snli_last_word, snli_word_by_word) = (
    partial(recipe, case) for case in CASES if case.startswith("snli"))
# fmt: on


def part(corpus: str, name: str, *, headed: bool = False) -> TabSeparated:
    """Return one of the three files of a corpus, with two texts and a label on each line, or with the heads of all
    words.
    """
    path = FOLDER / f"{corpus}_{name}{'_headed' if headed else ''}.tsv"
    if not path.exists():
        found = pairs(corpus, name)
        write(path, _with_heads(list(found)) if headed else found)
    return tsv(path, second=1, target=2)


def _with_heads(found: Sequence[Pair]) -> Iterator[Pair]:
    heads = given_heads.headed(text for pair in found for text in pair[:2])
    return (Pair(heads[pair.first], heads[pair.second], pair.label) for pair in found)


def files(corpus: str, name: str) -> tuple[Path, ...]:
    """Return the source files of a part of a corpus."""
    if corpus == "sick":
        return (DATA / f"sick_nli/SICK_{SICK[name]}",)
    if name != "train":
        return (DATA / f"snli_dev_test/snli.{name}.tsv.gz",)
    others = (DATA / f"nli_extra/{extra}.csv.gz" for extra in EXTRA)
    return DATA / "cad_nli/all_combined/train.tsv.gz", *others


def pairs(corpus: str, name: str) -> Iterator[Pair]:
    """Yield the pairs of a part of a corpus."""
    if (corpus, name) == ("snli", "train"):
        yield from _others()
        return
    for row in _rows(files(corpus, name)[0]):
        if corpus == "snli":
            yield _pair(row[1], row[2], row[0])
        elif row[0] != "pair_ID":
            yield _pair(row[1], row[2], row[4])


def _others() -> Iterator[Pair]:
    """Yield the training pairs for SNLI, without pairs whose first text, or one of its captions, is in the files of
    SNLI.
    """
    seen = {_letters(pair.first) for part in ("dev", "test") for pair in pairs("snli", part)}
    counterfactual, *others = files("snli", "train")
    rows = COUNTED * list(_rows(counterfactual))[1:]
    for path in others:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows += list(csv.reader(file))[1:]
    for first, second, label in rows:
        captions = [caption for caption in _PICTURE.split(first) if caption.strip()]
        pair = _pair(" ".join(captions), second, label)
        longest = max(len(text.split()) for text in pair[:2])
        is_new = seen.isdisjoint(_letters(caption) for caption in captions)
        if is_new and pair.label in LABELS and all(pair) and longest <= LONGEST:
            yield pair


def counterfactual(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file of counterfactual pairs, whose first line has the names of the columns."""
    rows = _rows(path)
    next(rows)
    return (_pair(*row) for row in rows)


def _letters(text: str) -> str:
    """Return a text without its punctuation, because some corpora have removed it."""
    return "".join(re.findall(r"\w", text.lower()))


def _pair(first: str, second: str, label: str) -> Pair:
    return Pair(_words(first), _words(second), label.strip().lower())


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _rows(path: Path) -> Iterator[list[str]]:
    return (line.split("\t") for line in LineReader(str(path)))


def write(path: Path, found: Iterable[Pair]) -> None:
    """Write pairs, one on each line."""
    write_whole(path, ("\t".join(pair) + "\n" for pair in found))

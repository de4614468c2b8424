r"""Sentiment of sentences with trees: a recursive network along the given tree, a balanced tree or a chain, next to others.

    foveal fit --recipe recipes/sentence_trees.py:given --out runs/given
    python -m benchmarks.lectures fit sentence_trees --runs runs              all cases, three seeds
    python -m benchmarks.lectures score sentence_trees --runs runs

    words           the mean of the words' vectors, without order
    convolution     two convolutions, and the maximum over positions
    recurrent       an LSTM that reads from both ends; its last states
    chain           a Tree-LSTM along a chain from left to right
    balanced        a Tree-LSTM along a balanced tree
    given           a Tree-LSTM along the tree of the treebank
    given_tanh      the same tree, one tanh layer as composition
    given_tensor    the same tree, composition by a tensor

The Stanford Sentiment Treebank gives every phrase of a sentence a label from 0 (very negative) to 4. As in the papers, a
training example is a phrase, here each distinct phrase of the training sentences whose label is not 2 (neutral). The
validation and test sets contain whole sentences with a label other than 2. Word vectors start at random, and words
are in lower case. The recipe writes the phrases once, into `.cache/sentence_trees` of the checkout.

References: Socher et al. 2013 (treebank, composition by a tensor); Tai et al. 2015 (Tree-LSTM); Kim 2014 (convolutions).
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foveal.data import JsonLines, LineReader, WhitespaceSpec, json_lines
from foveal.datasets import data_folder
from foveal.models import (
    BracketedEncoderSpec,
    ClassifierSpec,
    ConvolutionalEncoderSpec,
    RecursiveEncoderSpec,
    TextEncoderSpec,
    WordEncoderSpec,
)
from foveal.tasks import ClassificationSpec
from foveal.training import Run, TrainingSpec
from recipes.whole_files import write_whole

DATA = data_folder()
FOLDER = Path(__file__).resolve().parents[1] / ".cache/sentence_trees"
PARTS = ("train", "dev", "test")
SIZE, SMALL = 64, 25  # a tensor has 2 * 25^3 * 2 numbers
_TREE = {"embedding_size": SIZE, "hidden_size": SIZE, "dropout": 0.3}
MODELS = {
    "words": ClassifierSpec(encoder=WordEncoderSpec(embedding_size=SIZE), pooling="mean"),
    "convolution": ClassifierSpec(
        encoder=ConvolutionalEncoderSpec(embedding_size=SIZE, size=SIZE, num_layers=2, dropout=0.3),
        pooling="max",
    ),
    "recurrent": ClassifierSpec(
        encoder=TextEncoderSpec(embedding_size=SIZE, hidden_size=SIZE, dropout=0.3),
        pooling="summary",
    ),
    "chain": ClassifierSpec(encoder=RecursiveEncoderSpec(tree="chain", **_TREE), pooling="summary"),
    "balanced": ClassifierSpec(encoder=RecursiveEncoderSpec(**_TREE), pooling="summary"),
    "given": ClassifierSpec(encoder=BracketedEncoderSpec(**_TREE), pooling="summary"),
    "given_tanh": ClassifierSpec(
        encoder=BracketedEncoderSpec(composition="tanh", **_TREE), pooling="summary"
    ),
    "given_tensor": ClassifierSpec(
        encoder=BracketedEncoderSpec(
            composition="tensor", embedding_size=SMALL, hidden_size=SMALL, dropout=0.3
        ),
        pooling="summary",
    ),
}
CASES = tuple(MODELS)
_TOKEN = re.compile(r"\(([0-4]) |([()])|([^() ]+)")


class Phrase(NamedTuple):
    """A phrase of a treebank: its words in brackets, its words, and its label from 0 to 4."""

    brackets: str
    words: str
    label: int


def recipe(case: str = "given") -> Run:
    """Return the run of a classifier of sentences."""
    form = "brackets" if MODELS[case].reads_trees else "words"
    train, dev, test = (part(form, name) for name in PARTS)
    return Run(
        task=ClassificationSpec(
            source=WhitespaceSpec(), min_count=2, model=MODELS[case], word_dropout=0.05
        ),
        train=train,
        dev=dev,
        test=test,
        training=TrainingSpec(epochs=2.0, batch_size=64, learning_rate=3e-3, seed=1),
    )


(words, convolution, recurrent, chain, balanced, given, given_tanh, given_tensor) = (
    partial(recipe, case) for case in CASES
)


def part(form: str, name: str) -> JsonLines:
    """Return the examples of a part, with brackets or as words only."""
    path = FOLDER / f"{form}_{name}.jsonl"
    if not path.exists():
        found = {(each.brackets, each.label > 2): each for each in examples(name)}
        lines = ((each.brackets, each.words, each.label) for each in found.values())
        write_whole(path, (_line(form, *each) for each in lines))
    return json_lines(path)


def _line(form: str, brackets: str, words: str, label: int) -> str:
    text = brackets if form == "brackets" else words
    return json.dumps({"source": text, "target": "positive" if label > 2 else "negative"}) + "\n"


def examples(name: str) -> Iterator[Phrase]:
    """Yield the phrases of the training sentences, or the sentences of another part, without neutral ones."""
    for line in LineReader(str(file_of(name))):
        phrases = phrases_of(line)
        for phrase in phrases if name == "train" else phrases[-1:]:
            if phrase.label != 2:
                yield phrase


def file_of(name: str) -> Path:
    """Return the source file of a part."""
    return DATA / f"sst_trees/{name}.txt.gz"


def phrases_of(line: str) -> Sequence[Phrase]:
    """Return all phrases of a tree such as `(3 (2 It) (4 works))`, the sentence last."""
    found, opened = list[Phrase](), list[tuple[int, list[Phrase | str]]]()
    for label, bracket, word in _TOKEN.findall(line):
        if label:
            opened.append((int(label), []))
        elif word:
            opened[-1][1].append(word.lower())
        elif bracket == ")":
            number, parts = opened.pop()
            phrase = _phrase(number, parts)
            found.append(phrase)
            if opened:
                opened[-1][1].append(phrase)
    return found


def _phrase(label: int, parts: Sequence[Phrase | str]) -> Phrase:
    if isinstance(parts[0], str):
        return Phrase(parts[0], parts[0], label)
    inner = [each for each in parts if isinstance(each, Phrase)]
    brackets = " ".join(each.brackets for each in inner)
    return Phrase(f"( {brackets} )", " ".join(each.words for each in inner), label)

r"""Documents: positive and negative film reviews, with attention over words, sentences, both or neither.

    foveal fit --recipe recipes/documents.py --out runs/reviews
    python -m benchmarks.lectures fit documents --runs runs                 all of the reviews, ten folds
    python -m benchmarks.lectures score documents --runs runs

A case is a corpus, a system and, for the reviews, a fold:

    mean            the mean of the words' vectors
    attention       attention over all words of the document (flat)
    sentences       a recurrent network over sentences, each the mean of its words; no attention
    hierarchical    attention over the words of each sentence, and over the sentences
    recurrent       the same with a recurrent network over the words too, as in the paper; slower

`reviews` contains the 2,000 reviews of Pang and Lee 2004 in ten folds by number: cv000 to cv099 are the test set of
fold 0, and so on. There is no development set: runs have a fixed length and keep their last weights. `imdb` contains
the 50,000 reviews of Maas et al. 2011: half are the test set, and a tenth of the others is the validation set.

Except in `recurrent`, word vectors have no context, and a fold takes half a minute. `foveal data get
movie_reviews_pang_lee imdb_aclImdb` gets the data. The recipe writes the documents once, into `.cache/documents` of the
checkout, with one sentence on each line; it breaks sentences of more than 30 words into several lines.

Reference: Yang et al. 2016, Hierarchical attention networks for document classification.
"""

import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foveal.data import JsonLines, LineReader, WhitespaceSpec, json_lines
from foveal.datasets import data_folder
from foveal.models import (
    ClassifierSpec,
    DocumentEncoderSpec,
    EncoderSpec,
    RecurrentSpec,
    SoftmaxSpec,
    TextEncoderSpec,
    WordEncoderSpec,
)
from foveal.tasks import ClassificationSpec
from foveal.training import Run, TrainingSpec
from recipes.whole_files import write_whole

ROOT = Path(__file__).resolve().parents[1]
DATA = data_folder()
FOLDER = ROOT / ".cache/documents"
REVIEWS = DATA / "movie_reviews_pang_lee/movie_reviews.zip"
LABELS = {"neg": "blame", "pos": "praise"}
CORPORA = ("reviews", "imdb")
SYSTEMS = ("mean", "attention", "sentences", "hierarchical", "recurrent")
FOLDS = range(10)
CASES = (
    *(f"reviews_{system}_{fold}" for fold in FOLDS for system in SYSTEMS[:-1]),
    *(f"imdb_{system}" for system in SYSTEMS),
)
SIZE = 32
# Validation reviews of IMDb have this number or a higher one, for both labels. Reviews of one film are contiguous.
FIRST_DEV = 11_250
MOST_WORDS = 30  # on a line: documents in a batch are padded to the longest
_WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?:<br />\s*)+")


class Review(NamedTuple):
    """A document: tokenized sentences, one on each line, and its label."""

    text: str
    label: str


def recipe(case: str = "reviews_hierarchical_0") -> Run:
    """Return the run of a document classifier."""
    corpus, system, *fold = case.split("_")
    name = f"{corpus}_{fold[0]}" if fold else corpus
    return Run(
        task=task(system),
        train=part(f"{name}_train"),
        dev=None if fold else part(f"{name}_dev"),
        test=part(f"{name}_test"),
        training=TrainingSpec(epochs=4.0, batch_size=16, learning_rate=6e-3, seed=1),
    )


def task(system: str) -> ClassificationSpec:
    """Return the encoder of a document, and the pooling of its vectors."""
    words = WordEncoderSpec(embedding_size=SIZE, dropout=0.3)
    states = RecurrentSpec(cell="gru", hidden_size=SIZE, dropout=0.3)
    in_order = TextEncoderSpec(cell="gru", embedding_size=SIZE, hidden_size=SIZE, dropout=0.3)
    soft = SoftmaxSpec()
    encoder, pooling = {
        "mean": (words, "mean"),
        "attention": (words, soft),
        "sentences": (DocumentEncoderSpec(words=words, pooling=None, sentences=states), "summary"),
        "hierarchical": (_two_levels(words, states), soft),
        "recurrent": (_two_levels(in_order, states), soft),
    }[system]
    return ClassificationSpec(
        source=WhitespaceSpec(),
        min_count=3,
        model=ClassifierSpec(encoder=encoder, pooling=pooling, dropout=0.3),
        word_dropout=0.1,
    )


def _two_levels(words: EncoderSpec, sentences: RecurrentSpec) -> DocumentEncoderSpec:
    return DocumentEncoderSpec(words=words, pooling=SoftmaxSpec(), sentences=sentences)


# fmt: off
reviews_mean, reviews_attention, reviews_sentences, reviews_hierarchical, reviews_recurrent = (
    partial(recipe, f"reviews_{system}_0") for system in SYSTEMS)
imdb_mean, imdb_attention, imdb_sentences, imdb_hierarchical, imdb_recurrent = (
    partial(recipe, f"imdb_{system}") for system in SYSTEMS)
# fmt: on


def part(name: str) -> JsonLines:
    """Return a part of a corpus by name, such as reviews_0_train or imdb_test."""
    path = FOLDER / f"{name}.jsonl"
    if not path.exists():
        write(path, reviews(name))
    return json_lines(path)


def file_of(name: str) -> Path:
    """Return the source files of a part of a corpus."""
    corpus, *_, kind = name.split("_")
    file = "test" if kind == "test" else "train"
    return REVIEWS if corpus == "reviews" else DATA / f"imdb_aclImdb/{file}.tsv.zst"


def reviews(name: str) -> Iterator[Review]:
    """Yield the documents of a part."""
    corpus, *fold, kind = name.split("_")
    if corpus == "reviews":
        yield from (
            review for number, review in _pang_lee() if (number == int(fold[0])) == (kind == "test")
        )
        return
    for line in LineReader(str(file_of(name))):
        label, _, number, text = line.split("\t")
        if kind != "test" and (int(number) >= FIRST_DEV) != (kind == "dev"):
            continue
        lines = (_WORD.findall(part.lower()) for part in _SENTENCE.split(text))
        yield Review(_text(lines), LABELS["pos" if int(label) else "neg"])


def _pang_lee() -> Iterator[tuple[int, Review]]:
    """Yield the reviews with the fold whose test set they belong to."""
    with zipfile.ZipFile(REVIEWS) as archive:
        for path in sorted(archive.namelist()):
            folder, _, name = path.removeprefix("movie_reviews/").partition("/")
            if folder in LABELS and name.startswith("cv"):
                text = archive.read(path).decode("latin-1")
                lines = (line.split() for line in text.splitlines())
                yield int(name[2]), Review(_text(lines), LABELS[folder])


def _text(sentences: Iterable[list[str]]) -> str:
    return "\n".join(
        " ".join(words[start : start + MOST_WORDS])
        for words in sentences
        for start in range(0, len(words), MOST_WORDS)
    )


def write(path: Path, found: Iterable[Review]) -> None:
    """Write documents, one on each line."""
    write_whole(
        path, (json.dumps({"source": text, "target": label}) + "\n" for text, label in found)
    )

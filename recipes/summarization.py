r"""Summarization: one sentence for the abstract of a paper, and the subject of an email.

    foveal fit --recipe recipes/summarization.py:scitldr_copy --out runs/scitldr
    python -m benchmarks.lectures fit summarization --runs runs             both corpora, three seeds
    python -m benchmarks.lectures score summarization --runs runs

A case is a corpus and a system:

    none            the decoder reads the last state of the encoder
    attention       softmax attention over the words of the source
    copy            attention that also copies words of the source (pointer-generator)
    coverage        copy, with coverage as a feature of the score and as a loss
    hierarchical    copy, with an encoder of documents and attention over the words of each sentence and over sentences

`scitldr` has 1,992 abstracts with one summary each for training; its development and test abstracts have several
summaries, and the best match counts. `aeslc` has 14,436 emails of the Enron corpus with their subjects; development and
test emails have three more subjects by annotators. The emails are for non-commercial use, and Foveal does not
distribute them. The recipe reads `scitldr/*.jsonl` (allenai/scitldr, SciTLDR-A: id, title, source, targets) and
`aeslc_email_subjects/*.jsonl.gz` (ryanzhumich/AESLC: id, body, subject, ann) below the folder of data sets.

The recipe writes the texts once, lowercased, tokenized and with one sentence on each line, into `.cache/summarization`
of the checkout. Sources are truncated by sentence: the first sentences with at most LONGEST words.

References: Cachola et al. 2020 (SciTLDR); Zhang and Tetreault 2019 (AESLC); See et al. 2017 (copying, coverage).
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from foveal.data import JsonLines, WhitespaceSpec, json_lines
from foveal.datasets import data_folder
from foveal.models import (
    DecoderSpec,
    DocumentEncoderSpec,
    HierarchicalSpec,
    RecurrentSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec
from recipes.whole_files import write_whole

ROOT = Path(__file__).resolve().parents[1]
DATA = data_folder()
FOLDER = ROOT / ".cache/summarization"
CORPORA = ("scitldr", "aeslc")
SYSTEMS: dict[str, dict[str, Any]] = {
    "none": {"attention": None},
    "attention": {"attention": SoftmaxSpec()},
    "copy": {"attention": SoftmaxSpec(), "copy": True},
    "coverage": {"attention": SoftmaxSpec(), "copy": True, "coverage": True},
    "hierarchical": {"attention": HierarchicalSpec(), "copy": True},
}
CASES = tuple(f"{corpus}_{system}" for corpus in CORPORA for system in SYSTEMS)
LONGEST = {"scitldr": 120, "aeslc": 60}  # words of a source
# The longest outputs: nearly all references are shorter.
WRITTEN = {"scitldr": 40, "aeslc": 12}
TRAINING = {
    "scitldr": TrainingSpec(epochs=12.0, batch_size=32, learning_rate=3e-3, seed=1),
    "aeslc": TrainingSpec(epochs=3.0, batch_size=32, learning_rate=3e-3, seed=1),
}
SIZE = 96
WORDS = TextEncoderSpec(embedding_size=SIZE, hidden_size=SIZE, dropout=0.3)
DOCUMENTS = DocumentEncoderSpec(words=WORDS, sentences=RecurrentSpec(hidden_size=SIZE, dropout=0.3))
_WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class Document(NamedTuple):
    """A source, one tokenized sentence on each line, and its summaries."""

    source: str
    summaries: tuple[str, ...]


def recipe(case: str = "scitldr_copy") -> Run:
    """Return a run with a bidirectional LSTM and an LSTM of 96 units: about five CPU minutes."""
    corpus, _, system = case.partition("_")
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(),
            target=WhitespaceSpec(),
            outputs="summaries",
            min_count=3,
            label_smoothing=0.0,
            coverage=1.0 if system == "coverage" else 0.0,
            model=Seq2SeqSpec(
                encoder=DOCUMENTS if system == "hierarchical" else WORDS,
                decoder=DecoderSpec(
                    embedding_size=SIZE, hidden_size=SIZE, dropout=0.3, **SYSTEMS[system]
                ),
            ),
            prediction=PredictionSpec(
                length_penalty=1.0, max_length=WRITTEN[corpus], no_repeat_ngram=3
            ),
        ),
        train=part(corpus, "train"),
        dev=part(corpus, "dev"),
        test=part(corpus, "test"),
        training=TRAINING[corpus],
    )


# fmt: off
scitldr_none, scitldr_attention, scitldr_copy, scitldr_coverage, scitldr_hierarchical = (
    partial(recipe, f"scitldr_{system}") for system in SYSTEMS)
aeslc_none, aeslc_attention, aeslc_copy, aeslc_coverage, aeslc_hierarchical = (
    partial(recipe, f"aeslc_{system}") for system in SYSTEMS)
# fmt: on


def part(corpus: str, name: str) -> JsonLines:
    """Return a part of a corpus, with one line for each summary of a source."""
    path = FOLDER / f"{corpus}_{name}.jsonl"
    if not path.exists():
        write_whole(path, _lines(documents(corpus, name)))
    return json_lines(path)


def file_of(corpus: str, name: str) -> Path:
    """Return the source file of a part of a corpus."""
    if corpus == "scitldr":
        return DATA / f"scitldr/{name}.jsonl"
    return DATA / f"aeslc_email_subjects/{name}.jsonl.gz"


def documents(corpus: str, name: str) -> Iterator[Document]:
    """Yield the documents of a part, truncated; those without a word in the source or the summary are left out."""
    path = file_of(corpus, name)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if corpus == "scitldr":
                sentences, summaries = record["source"], record["targets"]
            else:
                sentences = _SENTENCE.split(record["body"])
                summaries = [record["subject"], *record["ann"]]
            source = "\n".join(truncated(map(words_of, sentences), LONGEST[corpus]))
            written = tuple(filter(None, map(words_of, summaries)))
            if source and written:
                yield Document(source, written)


def words_of(text: str) -> str:
    """Return a text in lowercase, with spaces between words and punctuation."""
    return " ".join(_WORD.findall(text.lower()))


def truncated(sentences: Iterable[str], most: int) -> Sequence[str]:
    """Return the first sentences that have at most `most` words together; a longer first sentence is cut."""
    kept, room = list[str](), most
    for sentence in filter(None, sentences):
        words = sentence.split()
        if kept and len(words) > room:
            break
        kept.append(" ".join(words[:most]))
        room -= len(words)
    return kept


def _lines(found: Iterable[Document]) -> Iterator[str]:
    for source, summaries in found:
        for summary in summaries:
            yield json.dumps({"source": source, "target": summary}) + "\n"

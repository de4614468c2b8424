"""Sentiment of film reviews, with attention to words and to sentences (Yang et al. 2016).

Pang and Lee 2004: 2,000 reviews, split by the numbers in their names as usual; the last tenth is the test
set. The gallery shows its shortest positive review.
"""

import random
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from examples.support import DATA
from examples.support.texts import Descent
from foveal.attention import AttentionTrace, Layout
from foveal.data import Vocabulary
from foveal.data.vocabularies._vocabulary import UNKNOWN
from foveal.models import (
    Classifier,
    ClassifierSpec,
    DocumentEncoderSpec,
    RecurrentSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from foveal.models._classifier import Classified
from foveal.networks import DocumentEncoder, TextEncoder, initialize_uniform
from foveal.specs import to_data

from ..results import Results, digest
from ._exhibit import Budget, Exhibit, Shown, Stopwatch, rounded, share_row

ARCHIVE = "movie_reviews_pang_lee/movie_reviews.zip"
LABELS = ("blame", "praise")
MOST_SENTENCES, MOST_WORDS = 20, 25  # the last sentences of a review, the first words of a sentence
MIN_COUNT = 5
UPDATES, BATCH, RATE = 560, 16, 8e-3
HIDDEN_SHARE = 0.1  # word dropout: fraction of words replaced by the unknown token


class Review(NamedTuple):
    """Sentences of words, and the label: 0 for negative, 1 for positive."""

    sentences: tuple[tuple[str, ...], ...]
    label: int

    @property
    def num_words(self) -> int:
        """Count the words of all sentences."""
        return sum(map(len, self.sentences))


class Read(NamedTuple):
    """A batch of reviews."""

    words: Tensor  # (B, n, w)
    mask: Tensor
    labels: Tensor  # (B,)


def read_reviews() -> tuple[list[Review], list[Review]]:
    """Read the training set and the test set."""
    known, unseen = list[Review](), list[Review]()
    with zipfile.ZipFile(DATA / ARCHIVE) as archive:
        for label, folder in enumerate(("neg", "pos")):
            names = [name for name in archive.namelist() if f"/{folder}/cv" in name]
            for name in sorted(names):
                text = archive.read(name).decode("latin-1")
                rows = (tuple(line.split()[:MOST_WORDS]) for line in text.splitlines())
                review = Review(tuple(row for row in rows if row)[-MOST_SENTENCES:], label)
                (unseen if "/cv9" in name else known).append(review)
    return known, unseen


def spec() -> ClassifierSpec:
    """Return a classifier that attends to words within sentences, and to sentences within the review."""
    return ClassifierSpec(
        encoder=DocumentEncoderSpec(
            words=TextEncoderSpec(cell="gru", embedding_size=48, hidden_size=24, dropout=0.3),
            pooling=SoftmaxSpec(),
            sentences=RecurrentSpec(cell="gru", hidden_size=24, dropout=0.3),
        ),
        pooling=SoftmaxSpec(),
    )


def reviews(budget: Budget) -> Exhibit:
    """Train, test, and record the attention on one review."""
    watch, (known, unseen) = Stopwatch(), read_reviews()
    torch.manual_seed(budget.seed)
    texts = (row for review in known for row in review.sentences)
    vocabulary = Vocabulary.count(texts, min_count=MIN_COUNT)
    model = spec().build(vocabulary=len(vocabulary), num_classes=len(LABELS))
    steps = budget.steps(UPDATES)
    assert isinstance(model.encoder, DocumentEncoder)
    assert isinstance(model.encoder.words, TextEncoder)
    # Small initial embeddings: with 1,800 reviews, training soon outweighs the random initial values.
    initialize_uniform(model.encoder.words.embedding)
    descent = Descent(model, learning_rate=RATE, num_steps=steps)
    batches = _batches(vocabulary, known, budget.seed)
    for batch, _ in zip(batches, range(steps), strict=False):
        hidden = torch.rand(batch.words.shape) < HIDDEN_SHARE
        words = batch.words.masked_fill(hidden & batch.mask, UNKNOWN)
        descent.step(nll_loss(model(words, batch.mask).log_probs, batch.labels))
    model.eval()
    right = list[bool]()
    for start in range(0, len(unseen), 20):
        some = unseen[start : start + 20]
        chosen = _classify(model, collate(vocabulary, some)).log_probs.argmax(-1).tolist()
        right += [label == review.label for label, review in zip(chosen, some, strict=True)]
    rows = [share_row("test reviews classified right", right, budget.seed), watch.row(budget.seed)]
    training = {"updates": steps, "batch": BATCH, "learning rate": RATE, "hidden": HIDDEN_SHARE}
    results = Results.here("python -m benchmarks.gallery --cases reviews").with_rows(rows)
    shortest = min((each for each in unseen if each.label == 1), key=lambda each: each.num_words)
    return Exhibit(
        results=replace(
            results,
            data={ARCHIVE: digest(DATA / ARCHIVE)},
            spec={"model": to_data(spec()), "training": training},
        ),
        shown=_look(model, vocabulary, shortest),
    )


def collate(vocabulary: Vocabulary, some: Sequence[Review]) -> Read:
    """Build a batch, padded on the right in both axes."""
    num_sentences = max(len(review.sentences) for review in some)
    width = max(len(row) for review in some for row in review.sentences)
    words = torch.zeros(len(some), num_sentences, width, dtype=torch.long)
    for item, review in enumerate(some):
        for place, row in enumerate(review.sentences):
            words[item, place, : len(row)] = torch.tensor(vocabulary.encode(row))
    return Read(words, words > 0, torch.tensor([review.label for review in some]))


def _batches(vocabulary: Vocabulary, known: Sequence[Review], seed: int) -> Iterator[Read]:
    """Yield batches of reviews of similar length, in random order, forever."""
    chance = random.Random(seed)
    ordered = sorted(known, key=lambda review: len(review.sentences))
    starts = list(range(0, len(ordered), BATCH))
    while True:
        chance.shuffle(starts)
        for start in starts:
            yield collate(vocabulary, ordered[start : start + BATCH])


def _classify(model: Classifier, batch: Read) -> Classified:
    with torch.no_grad():
        return model(batch.words, batch.mask)


def _look(model: Classifier, vocabulary: Vocabulary, review: Review) -> Shown:
    classified = _classify(model, collate(vocabulary, [review]))
    probability, label = classified.log_probs[0].exp().max(-1)
    weights = classified.weights
    assert weights is not None
    width = max(map(len, review.sentences))
    known = {word for row in review.sentences for word in row if word in vocabulary.tokens}
    unknown = sorted({word for row in review.sentences for word in row} - known)
    return Shown(
        facts={
            "output": LABELS[int(label)],
            "reference": LABELS[review.label],
            "probability": round(float(probability), 4),
            "unknown words": unknown,
        },
        trace=AttentionTrace(
            kind="hierarchical",
            sources=tuple(
                word for row in review.sentences for word in (*row, *[""] * (width - len(row)))
            ),
            targets=(LABELS[int(label)],),
            weights=rounded(weights[0].reshape(1, -1)),
            layout=Layout("sentences", len(review.sentences), width),
        ),
    )

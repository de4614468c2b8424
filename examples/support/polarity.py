"""Sentences of praise and of blame (Pang and Lee 2005)."""

from . import Corpus, Sentence
from .texts import read_lines

ARCHIVE = "sentence_polarity/sentence_polarity.zip"


def read_polarity(*, cut: int | None) -> Corpus:
    """The first nine tenths of either file to train on, the last to test on.

    A word is its own and only feature; its label is that of its sentence, 0 for blame and 1 for
    praise.

    Args:
        cut: so many sentences of each file; None for all.
    """
    train: list[Sentence] = []
    test: list[Sentence] = []
    for label, name in enumerate(("neg", "pos")):
        lines = read_lines(ARCHIVE, f"sentence_polarity/rt-polarity.{name}", cut=cut)
        sentences: list[Sentence] = [[([word], label) for word in line.split()] for line in lines]
        size = len(sentences) * 9 // 10
        train += sentences[:size]
        test += sentences[size:]
    words = sorted({word for sentence in train for (word,), _ in sentence})
    return Corpus(train=train, test=test, vocabulary={w: n for n, w in enumerate(words, 1)})

"""Induced parses: heads that a model learns without supervision, compared with a treebank.

The sentences are the development set of UD English EWT in lower case. Punctuation is not counted, as usual,
and out-of-vocabulary words become the unknown token. Tree attention gives the heads of the most probable
tree; independent heads give the most probable head of each word.

    attached      fraction of words whose head matches the treebank
    undirected    the same fraction, with head and word interchangeable

The baselines attach each word to the previous word (left) or to the next word (right), and the first or
last word to the root.
"""

import gzip
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import torch

from examples.support import DATA
from foveal.networks import SelfAttentiveEncoder
from foveal.tasks import PairClassification

from ..results import Row
from ._comparison import UNIT, mean_row

PARSES = "induced_parses"
TREEBANK = "ud_english_ewt/en_ewt-ud-dev.conllu.gz"
AT_ONCE = 64  # sentences
LONGEST = 40  # words: the training sentences of these models are shorter

# The heads of the words of a sentence, counted from 1; 0 is the root.
Heads: TypeAlias = list[int]


class Parsed(NamedTuple):
    """A sentence of the treebank."""

    words: list[str]
    heads: Heads
    counts: list[bool]  # False on punctuation


class Attached(NamedTuple):
    """Attachment scores in per cent."""

    directed: float
    undirected: float


def parse_rows(
    case: str, tasks: Sequence[PairClassification], seeds: Sequence[int]
) -> Iterator[Row]:
    """Return the figures of a case and of both baselines."""
    sentences = read_treebank()
    found = [attached(sentences, induced_heads(task, sentences)) for task in tasks]
    known = [_share_known(task, sentences) for task in tasks]
    yield mean_row(f"{case}: attached", [each.directed for each in found], UNIT, seeds)
    yield mean_row(f"{case}: undirected", [each.undirected for each in found], UNIT, seeds)
    yield mean_row(f"{case}: words known", known, UNIT, seeds)
    chains: dict[str, Callable[[int], Heads]] = {"left": left_chain, "right": right_chain}
    for name, chain in chains.items():
        score = attached(sentences, [chain(len(sentence.words)) for sentence in sentences])
        yield Row(name=f"{name} chain: attached", value=score.directed, unit=UNIT)
        yield Row(name=f"{name} chain: undirected", value=score.undirected, unit=UNIT)


def read_treebank() -> list[Parsed]:
    """Read the sentences that have two to `LONGEST` words."""
    found = list[Parsed]()
    with gzip.open(DATA / TREEBANK, "rt", encoding="utf-8") as file:
        for block in file.read().split("\n\n"):
            rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
            rows = [row for row in rows if row[0].isdecimal()]
            if 2 <= len(rows) <= LONGEST:
                words = [row[1].lower().replace(" ", "\N{NO-BREAK SPACE}") for row in rows]
                counts = [row[3] != "PUNCT" for row in rows]
                found.append(Parsed(words, [int(row[6]) for row in rows], counts))
    return found


def induced_heads(task: PairClassification, sentences: Sequence[Parsed]) -> list[Heads]:
    """Return the heads that a model induces."""
    encoder = task.model.encoder
    assert isinstance(encoder, SelfAttentiveEncoder)
    found = list[Heads]()
    with task.answering():
        for start in range(0, len(sentences), AT_ONCE):
            some = [
                torch.tensor(task.vocabularies.source.encode(sentence.words))
                for sentence in sentences[start : start + AT_ONCE]
            ]
            tokens = torch.nn.utils.rnn.pad_sequence(some, batch_first=True)
            heads = encoder.attend(tokens, tokens > 0).distribution.argmax().tolist()
            found += [row[: len(one)] for row, one in zip(heads, some, strict=True)]
    return found


def attached(sentences: Sequence[Parsed], found: Sequence[Heads]) -> Attached:
    """Compute the percentage of words with the correct head.

    >>> dog = Parsed(["the", "dog", "ran"], [2, 3, 0], [True, True, True])
    >>> attached([dog], [[0, 1, 2]])
    Attached(directed=0.0, undirected=66.66666666666667)
    """
    num, directed, undirected = 0, 0, 0
    for sentence, heads in zip(sentences, found, strict=True):
        for word, (gold, head) in enumerate(zip(sentence.heads, heads, strict=True), start=1):
            if sentence.counts[word - 1]:
                num += 1
                directed += gold == head
                turned = head > 0 and sentence.heads[head - 1] == word and sentence.counts[head - 1]
                undirected += gold == head or turned
    return Attached(100 * directed / num, 100 * undirected / num)


def left_chain(size: int) -> Heads:
    """Attach each word to the previous word."""
    return list(range(size))


def right_chain(size: int) -> Heads:
    """Attach each word to the next word."""
    return [*range(2, size + 1), 0]


def _share_known(task: PairClassification, sentences: Sequence[Parsed]) -> float:
    known = task.vocabularies.source
    words = [word for sentence in sentences for word in sentence.words]
    return 100 * sum(word in known for word in words) / len(words)

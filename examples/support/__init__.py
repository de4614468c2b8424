"""What stands around the models of the examples: options, files of tokens, batches, training.

A file has a token on every line and an empty line after every sentence, as in the shared tasks of
CoNLL. An example says how to read a line: which features the model sees, which label it predicts.

Axes: B sentences, T tokens, F features of a token.
"""

import argparse
import gzip
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from foveal.datasets import data_file, data_folder
from foveal.errors import DataError

DATA = data_folder()

BATCH = 32  # sentences

Token: TypeAlias = tuple[list[str], int]
Sentence: TypeAlias = list[Token]


class Options(NamedTuple):
    """What the command line of an example asks for."""

    cut: int | None
    epochs: int
    seed: int


def parse_options(*, epochs: int) -> Options:
    """Read the command line, seed torch, and use one thread: a step is too small for more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cut", type=int, help="use so many sentences of each file; all if absent")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--seed", type=int, default=0)
    options = Options(**vars(parser.parse_args()))
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    return options


def find(name: str) -> Path:
    """The path of a file below the data folder; without the file, the program ends and prints how to get it."""
    try:
        return data_file(name)
    except DataError as error:
        print(f"skipped: {error}")
        raise SystemExit(0) from None


class Numbering(dict[str, int]):
    """Numbers strings from 0 on, in the order in which they are first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def spelling(word: str) -> list[str]:
    """The word, its beginning, its ending and its shape, such as Aa-0 for Boeing-747."""
    shape = re.sub("[0-9]+", "0", re.sub("[a-z]+", "a", re.sub("[A-Z]+", "A", word)))
    folded = word.lower()
    return [f"word {folded}", f"{folded[:3]}-", f"-{folded[-3:]}", f"shape {shape}"]


class Batch(NamedTuple):
    """Sentences of about one length, padded on the right."""

    features: Tensor  # (B, T, F), 0 for a feature that is unknown
    labels: Tensor  # (B, T), -1 on padding
    lengths: Tensor  # (B,)

    @property
    def mask(self) -> Tensor:
        """True on real tokens (B, T)."""
        return self.labels >= 0


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Sentences to train on, sentences to test on, and the features of the former, numbered."""

    train: list[Sentence]
    test: list[Sentence]
    vocabulary: dict[str, int]

    @classmethod
    def read(
        cls, train: str, test: str, token: Callable[[str], Token | None], *, cut: int | None
    ) -> "Corpus":
        """Read two files below the data folder, or end the program if they are not there.

        Args:
            train: the file to train on.
            test: the file to test on.
            token: a line to a token, or to None where the line is no token of its own.
            cut: so many sentences of each file; None for all.
        """
        known, unseen = (_sentences(find(name), token)[:cut] for name in (train, test))
        features = sorted({name for sentence in known for names, _ in sentence for name in names})
        vocabulary = {name: number for number, name in enumerate(features, 1)}
        return cls(train=known, test=unseen, vocabulary=vocabulary)

    @property
    def num_features(self) -> int:
        """How many numbers a feature can have, with 0 for unknown ones."""
        return len(self.vocabulary) + 1

    def batches(self, part: Literal["train", "test"]) -> Iterator[Batch]:
        """Batches in random order, each of sentences of about one length."""
        sentences = self.train if part == "train" else self.test
        order: list[int] = torch.randperm(len(sentences)).tolist()
        order.sort(key=lambda index: len(sentences[index]))
        starts = range(0, len(order), BATCH)
        for chosen in torch.randperm(len(starts)).tolist():
            indices = order[starts[chosen] : starts[chosen] + BATCH]
            yield self._batch([sentences[index] for index in indices])

    def _batch(self, sentences: list[Sentence]) -> Batch:
        features = [
            torch.tensor(
                [[self.vocabulary.get(name, 0) for name in names] for names, _ in sentence]
            )
            for sentence in sentences
        ]
        labels = [torch.tensor([label for _, label in sentence]) for sentence in sentences]
        return Batch(
            features=pad_sequence(features, batch_first=True),
            labels=pad_sequence(labels, batch_first=True, padding_value=-1),
            lengths=torch.tensor([len(sentence) for sentence in sentences]),
        )


class BiLSTM(nn.Module):
    """Reads every sentence in both directions; padding on the right reaches no word.

    The same as `nn.LSTM` on packed sequences, in half the time: to read backwards, it turns each
    sentence round in its place and leaves the padding behind it.
    """

    def __init__(
        self, input_size: int, hidden_size: int, *, num_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        sizes = [input_size] + [2 * hidden_size] * (num_layers - 1)
        self.forth = nn.ModuleList(nn.LSTM(size, hidden_size, batch_first=True) for size in sizes)
        self.back = nn.ModuleList(nn.LSTM(size, hidden_size, batch_first=True) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Inputs (B, T, D) to states (B, T, 2 H), with dropout before each layer."""
        rows, steps = torch.arange(len(inputs))[:, None], torch.arange(inputs.shape[1])
        turned = (lengths[:, None] - 1 - steps) % len(steps)
        for forth, back in zip(self.forth, self.back, strict=True):
            inputs = self.dropout(inputs)
            backward = back(inputs[rows, turned])[0][rows, turned]
            inputs = torch.cat([forth(inputs)[0], backward], dim=-1)
        return inputs


def fit(
    model: nn.Module,
    loss_of: Callable[[Batch], Tensor],
    corpus: Corpus,
    *,
    epochs: int,
    learning_rate: float = 3e-3,
    hidden_share: float = 0.15,
) -> None:
    """Minimize the mean loss of the training sentences with Adam, printing a line per epoch.

    The learning rate rises and falls once. A share of the features is hidden from the model, so
    that it learns what to do about unknown ones.
    """
    optimizer = torch.optim.Adam(model.parameters())
    num_steps = epochs * math.ceil(len(corpus.train) / BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=num_steps)
    for epoch in range(1, epochs + 1):
        began, total = perf_counter(), 0.0
        for batch in corpus.batches("train"):
            shown = torch.rand(batch.features.shape) >= hidden_share
            losses = loss_of(batch._replace(features=batch.features * shown))
            optimizer.zero_grad()
            losses.mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            total += losses.sum().item()
        mean, seconds = total / len(corpus.train), perf_counter() - began
        print(f"epoch {epoch} of {epochs}: loss {mean:.3f}, {seconds:.0f} s", flush=True)
    model.eval()


def spans(tags: list[str]) -> set[tuple[int, int, str]]:
    """Start, end and type of every chunk in tags B-X, I-X and O.

    As in the shared tasks' own script, an I-X that continues no chunk of type X begins one.
    """
    ends = [t + 1 for t, tag in enumerate(tags) if tags[t + 1 : t + 2] != [f"I{tag[1:]}"]]
    bounds = pairwise([0, *ends])
    return {(start, end, tags[start][2:]) for start, end in bounds if tags[start] != "O"}


def span_f1(pairs: Iterable[tuple[Tensor, Tensor]], tags: Numbering) -> float:
    """F1 in per cent over the chunks in all pairs of predicted and gold labels (B, T).

    A chunk is right if its start, its end and its type are.
    """
    names = list(tags)
    num_right = num_found = 0
    for pair in pairs:
        for rows in zip(*(labels.tolist() for labels in pair), strict=True):
            predicted, gold = (spans([names[n] for n in row if n >= 0]) for row in rows)
            num_right += len(predicted & gold)
            num_found += len(predicted) + len(gold)
    return 200 * num_right / num_found


def _sentences(path: Path, token: Callable[[str], Token | None]) -> list[Sentence]:
    blocks = gzip.decompress(path.read_bytes()).decode("utf-8").strip().split("\n\n")
    lines = [[token(line) for line in block.split("\n")] for block in blocks]
    return [[token for token in sentence if token is not None] for sentence in lines]

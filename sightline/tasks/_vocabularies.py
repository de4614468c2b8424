"""What a task takes from its training data before any weight: symbols, labels, and how long outputs
are.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..data import UNKNOWN, Example, Labels, SentencePieceSpec, TokeniserSpec, Vocabulary
from ..errors import DataError


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """No target of the training data is longer than `ratio * source + slack` symbols."""

    ratio: float = 2.0
    slack: float = 10.0

    def limit(self, source: int) -> int:
        """The longest output to look for, the end symbol counted; a fifth beyond what was seen."""
        return int(1.2 * (self.ratio * source + self.slack)) + 2


@dataclass(frozen=True, kw_only=True)
class Vocabularies:
    """The numbers of everything that a task reads and writes."""

    source: Vocabulary
    target: Vocabulary | None = None
    features: Vocabulary | None = None
    labels: Labels | None = None
    rare: tuple[str, ...] = ()  # source symbols that the training data has, but not often
    lengths: Lengths = Lengths()

    def to_data(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "source": list(self.source.tokens),
            "target": None if self.target is None else list(self.target.tokens),
            "features": None if self.features is None else list(self.features.tokens),
            "labels": None if self.labels is None else list(self.labels.names),
            "rare": list(self.rare),
            "lengths": {"ratio": self.lengths.ratio, "slack": self.lengths.slack},
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Vocabularies":
        """What `to_data` wrote."""
        target, features, labels = (data[name] for name in ("target", "features", "labels"))
        return cls(
            source=Vocabulary(tuple(data["source"])),
            target=None if target is None else Vocabulary(tuple(target)),
            features=None if features is None else Vocabulary(tuple(features)),
            labels=None if labels is None else Labels(tuple(labels)),
            rare=tuple(data["rare"]),
            lengths=Lengths(**{name: float(value) for name, value in data["lengths"].items()}),
        )


def numbered(vocabulary: Vocabulary, symbols: Sequence[str]) -> list[int]:
    """The numbers of a text's symbols; an empty text is read as one unknown symbol, so that there is
    something to attend to.
    """
    return vocabulary.encode(symbols) or [UNKNOWN]


def required_target(example: Example) -> str:
    """The target of an example; `DataError` where there is none."""
    if example.target is None:
        with located(example):
            raise DataError(
                "the example has no target, expected one to learn from or to score against. "
                "Give a second column, or only predict."
            )
    return example.target


@contextmanager
def located(example: Example) -> Iterator[None]:
    """Errors of what is done inside say where the example stands."""
    try:
        yield
    except DataError as error:
        place = f"{example.where}: " if example.where is not None else ""
        raise DataError(f"{place}{error}") from None


def trained(spec: TokeniserSpec, texts: Iterable[str]) -> TokeniserSpec:
    """The tokeniser, with its subwords learnt if that has not been done."""
    if isinstance(spec, SentencePieceSpec) and not spec.model:
        return spec.trained_on(texts)
    return spec

"""The vocabularies of a task: tokens, labels, and lengths of outputs in the training set."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ...errors import DataError
from ...runtime._sizes import length_limit
from .._example import Example
from ..tokenizers._tokenizers import TokenizerSpec
from ._vocabulary import UNKNOWN, Labels, Vocabulary

_PARTS = frozenset({"source", "target", "features", "labels", "rare", "lengths"})
_LATER_PARTS = frozenset({"majority"})  # fields that bundles of older versions lack
_MOST_LENGTH = 1e6  # tokens: no search could finish a longer output


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """No target of the training set is longer than `ratio * source + slack` tokens."""

    ratio: float = 2.0
    slack: float = 10.0

    def limit(self, source: int) -> int:
        """Return the maximum length of an output, including the end token: a fifth more than in the training set."""
        return length_limit(source, self.ratio, self.slack)


@dataclass(frozen=True, kw_only=True)
class Vocabularies:
    """All vocabularies that a task needs to encode its inputs and outputs."""

    source: Vocabulary
    target: Vocabulary | None = None
    features: Vocabulary | None = None
    labels: Labels | None = None
    rare: tuple[str, ...] = ()  # source tokens that are rare in the training set
    lengths: Lengths = Lengths()
    # The most frequent answer in the training set to all questions ("") and, for tagging, to each word: the baseline
    # of a model. Empty if it was not counted.
    majority: Mapping[str, str] = field(default_factory=dict)

    def target_of(self, owner: str) -> Vocabulary:
        """Return the target vocabulary.

        Args:
            owner: Name of the task, for the error message.

        Returns:
            The target vocabulary.

        Raises:
            DataError: There is none.
        """
        if self.target is None:
            raise DataError(_none_counted(owner, "vocabulary of targets"))
        return self.target

    def labels_of(self, owner: str) -> Labels:
        """Return the labels.

        Args:
            owner: Name of the task, for the error message.

        Returns:
            The labels.

        Raises:
            DataError: There are none.
        """
        if self.labels is None:
            raise DataError(_none_counted(owner, "labels"))
        return self.labels

    def to_data(self) -> dict[str, Any]:
        """Convert to data for JSON.

        Returns:
            The tokens, labels and statistics as JSON values.
        """
        return {
            "source": list(self.source.tokens),
            "target": None if self.target is None else list(self.target.tokens),
            "features": None if self.features is None else list(self.features.tokens),
            "labels": None if self.labels is None else list(self.labels.names),
            "rare": list(self.rare),
            "lengths": {"ratio": self.lengths.ratio, "slack": self.lengths.slack},
            "majority": dict(self.majority),
        }

    @classmethod
    def from_data(cls, data: Any) -> "Vocabularies":
        """Read data that `to_data` wrote.

        Args:
            data: Vocabularies as JSON values.

        Returns:
            The vocabularies.

        Raises:
            DataError: The data has another structure.
        """
        if not isinstance(data, dict) or set(data) - _LATER_PARTS != _PARTS:
            raise DataError(
                f"the vocabularies must be an object with {', '.join(sorted(_PARTS))}, got "
                f"{str(sorted(data))[:200] if isinstance(data, dict) else type(data).__name__}. "
                f"Restore the file."
            )
        target, features, labels = (data[name] for name in ("target", "features", "labels"))
        return cls(
            source=Vocabulary(_texts(data, "source")),
            target=None if target is None else Vocabulary(_texts(data, "target")),
            features=None if features is None else Vocabulary(_texts(data, "features")),
            labels=None if labels is None else Labels(_texts(data, "labels")),
            rare=_texts(data, "rare"),
            lengths=_lengths(data["lengths"]),
            majority=_majority(data.get("majority", {})),
        )


def _none_counted(owner: str, what: str) -> str:
    return (
        f"{owner}: the vocabularies have no {what}, which the task needs. Build them with "
        f"spec.build_from(examples)."
    )


def _texts(data: dict[str, Any], name: str) -> tuple[str, ...]:
    """Read the list of texts of a vocabulary."""
    texts = data[name]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(
            f"{name}: expected a list of texts, got {str(texts)[:80]}. Restore the file."
        )
    return tuple(texts)


def _lengths(data: Any) -> Lengths:
    if not isinstance(data, dict) or set(data) != {"ratio", "slack"}:
        raise DataError(
            f"lengths: expected ratio and slack, got {str(data)[:80]}. Restore the file."
        )
    for name, value in data.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and abs(value) <= _MOST_LENGTH):
            raise DataError(
                f"lengths.{name}: expected a number up to {_MOST_LENGTH:g}, got {str(value)[:80]}. "
                f"Restore the file."
            )
    return Lengths(ratio=float(data["ratio"]), slack=float(data["slack"]))


def _majority(data: Any) -> dict[str, str]:
    """Read the majority answers of a bundle; bundles of older versions have none."""
    if not isinstance(data, dict) or not all(isinstance(text, str) for text in data.values()):
        raise DataError(
            f"Vocabularies: majority must be an object of texts, got {type(data).__name__}. Restore "
            f"the saved vocabulary.json."
        )
    return data


def numbered(vocabulary: Vocabulary, symbols: Sequence[str]) -> list[int]:
    """Convert the tokens of a text to ids. An empty text becomes one unknown token, because attention needs at least
    one position.
    """
    return vocabulary.encode(symbols) or [UNKNOWN]


def required_target(example: Example) -> str:
    """Return the target of an example.

    Args:
        example: Example to learn from, or to score against.

    Returns:
        The target.

    Raises:
        DataError: The example has none. The error gives the file and the line of the example.

    Examples:
        >>> required_target(Example("walk", "walked"))
        'walked'
    """
    if example.target is None:
        with located(example):
            raise DataError(
                "the example has no target, expected one for training or scoring. Add a second "
                "column, or only predict."
            )
    return example.target


@contextmanager
def located(example: Example) -> Iterator[None]:
    """Add the file and the line of an example to every `DataError` that the block raises.

    For example, "a tag is missing" becomes "verbs.tsv:3: a tag is missing". An example that was not read from
    a file changes nothing.

    Args:
        example: Example that the block works on.

    Yields:
        Nothing.

    Raises:
        DataError: The block raises a `DataError`.
    """
    try:
        yield
    except DataError as error:
        place = f"{example.where}: " if example.where is not None else ""
        raise DataError(f"{place}{error}") from None


def trained(spec: TokenizerSpec, texts: Iterable[str]) -> TokenizerSpec:
    """Return the tokenizer, trained on the texts if it needs training."""
    return spec if spec.is_trained else spec.trained_on(texts)

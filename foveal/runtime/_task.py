"""The task of a loaded model: it prepares inputs, and answers inputs of one padded shape together."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ._answers import Answer, Candidate, Source
from ._errors import ExportedModelError

_MOST_BEAM = 10_000
_SHOWN = 40  # characters of a text in an error


class Search(NamedTuple):
    """Settings of one search."""

    beam_size: int
    length_penalty: float
    max_length: int | None
    nbest: int

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Search":
        """Return the search of the settings in `model.json`."""
        return cls(*(settings[name] for name in cls._fields))

    def check(self) -> None:
        """Raise `ExportedModelError` for settings out of range."""
        if not 1 <= self.nbest <= self.beam_size <= _MOST_BEAM:
            raise ExportedModelError(
                f"expected 1 <= nbest <= beam_size <= {_MOST_BEAM}, got nbest={self.nbest} and "
                f"beam_size={self.beam_size}. Set beam_size={max(self.nbest, 1)}."
            )


@runtime_checkable
class Task(Protocol):
    """The task of an exported model."""

    search: Search  # the default settings

    def prepared(self, source: Source, search: Search) -> Any:
        """Return an input in the form that `shape` and `answer` take.

        Args:
            source: A text, or an image.
            search: Settings of the search.

        Returns:
            The prepared input.

        Raises:
            ExportedModelError: The input cannot be read or is too large.
        """
        ...

    def shape(self, prepared: Any) -> tuple[int, ...]:
        """Return the padded shape of an input; inputs of one shape share a batch."""
        ...

    def encoded(self, prepared: Any) -> list[int]:
        """Return the token ids of an input, as the graph reads them; an image has none."""
        ...

    def answer(self, prepared: Sequence[Any], search: Search, *, attention: bool) -> list[Answer]:
        """Answer inputs of one shape in one run of the graph.

        Args:
            prepared: Prepared inputs.
            search: Settings of the search.
            attention: Whether to return the attention.

        Returns:
            An answer for each input.
        """
        ...


def check_size(text: str, size: int, most: int) -> None:
    """Raise `ExportedModelError` for a text with too many tokens."""
    if size > most:
        raise ExportedModelError(
            f"a source may have at most {most} tokens, got {size}: {text[:_SHOWN]!r}. Split it."
        )


def padded(rows: Sequence[Sequence[int]], size: int) -> dict[str, np.ndarray]:
    """Return token ids, padded with 0, and their numbers, as graphs of texts read them."""
    tokens = np.zeros((len(rows), size), np.int64)
    for target, row in zip(tokens, rows, strict=True):
        target[: len(row)] = row
    return {"tokens": tokens, "lengths": np.array([len(row) for row in rows], np.int32)}


def ranked(
    outputs: Sequence[str], scores: Sequence[float], probabilities: Sequence[float], nbest: int
) -> tuple[Candidate, ...]:
    """Return the first candidates of a sorted list; a candidate with the score -inf does not exist."""
    rows = zip(outputs, scores, probabilities, strict=True)
    found = tuple(Candidate(*row) for row in rows if row[1] > -np.inf)[:nbest]
    if not found:
        raise ExportedModelError(
            "expected at least one possible output, got none: every continuation has probability 0 or NaN under the "
            "model. Allow longer outputs, or export a model with finite weights."
        )
    return found

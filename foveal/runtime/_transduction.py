"""Models from text to text: encode, search in the graph, calibrate, decode.

Axes: B items, S positions, K candidates, T output tokens.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, final

from ._answers import Answer, Source
from ._calibration import Scaling, calibrated
from ._engine import Engine
from ._sizes import size_class
from ._task import Search, check_size, padded
from ._writing import Writing, limit_of, search_inputs, written
from .text._tokenizer import tokenizer_of
from .text._vocabulary import (
    NUM_SPECIAL,
    UNKNOWN,
    numbered,
    tokens_of,
    tokens_with_slots,
    unseen_slots,
    with_slots,
)


class _Encoded(NamedTuple):
    """A source as the graph reads it."""

    tokens: list[int]  # features, then the source
    places: tuple[str, ...]  # the label of each position
    slots: dict[str, int]  # ids of unseen tokens
    limit: int  # the longest output, with the end token


@final
class Transducer:
    """An exported model from text to text.

    Args:
        settings: Content of `model.json`.
        vocabulary: Content of `vocabulary.json`.
        engine: The graph of the search.
    """

    def __init__(
        self, settings: Mapping[str, Any], vocabulary: Mapping[str, Any], engine: Engine
    ) -> None:
        self._source, self._target = (
            tokenizer_of(settings["source"]),
            tokenizer_of(settings["target"]),
        )
        features = settings["features"]
        self._features = None if features is None else tokenizer_of(features)
        self._source_tokens, self._target_tokens = vocabulary["source"], vocabulary["target"]
        self._source_numbers = numbered(self._source_tokens)
        self._feature_numbers = numbered(vocabulary["features"] or ())
        self._num_slots: int = settings["slots"]
        self._lengths = settings["lengths"]
        self._most: int = settings["max_source"]
        self._scalings = tuple(Scaling(**each) for each in settings["calibration"])
        self._engine = engine
        self.search = Search.of(settings["prediction"])

    def shape(self, prepared: _Encoded) -> tuple[int, ...]:
        """Return the padded number of positions."""
        return (size_class(len(prepared.tokens)),)

    def encoded(self, prepared: _Encoded) -> list[int]:
        """Return the token ids of a source, as the graph reads them."""
        return prepared.tokens

    def answer(
        self, prepared: Sequence[_Encoded], search: Search, *, attention: bool
    ) -> list[Answer]:
        """Answer sources of one padded size in one run of the graph.

        Args:
            prepared: Encoded texts, and their features.
            search: Settings of the search.
            attention: Whether to return the attention.

        Returns:
            An answer for each source.
        """
        size = max(size_class(len(one.tokens)) for one in prepared)
        inputs = padded([one.tokens for one in prepared], size)
        found = self._engine.run(
            {**inputs, **search_inputs([one.limit for one in prepared], search)}
        )
        probabilities = calibrated(self._scalings, found["totals"])
        return [
            written(
                {name: each[number] for name, each in found.items()},
                probabilities[number],
                Writing(
                    one.limit,
                    one.places,
                    partial(self._decoded, slots=one.slots),
                    self._target.decode,
                ),
                search.nbest,
                attention=attention,
            )
            for number, one in enumerate(prepared)
        ]

    def prepared(self, source: Source, search: Search) -> _Encoded:
        """Split and number a text and its features.

        Args:
            source: A text, and its features.
            search: Settings of the search, with the length of the longest output.

        Returns:
            The tokens and their ids.

        Raises:
            ExportedModelError: The text has too many tokens.
        """
        tokens = self._source.encode(source.text)
        features = [] if self._features is None else self._features.encode(source.features)
        check_size(source.text, len(tokens) + len(features), self._most)
        slots = unseen_slots(
            tokens, self._source_numbers, NUM_SPECIAL + len(self._source_tokens), self._num_slots
        )
        numbers = with_slots([self._source_numbers[token] for token in tokens], tokens, slots)
        if not tokens:  # an attention needs a position, so an empty text is one unknown token
            tokens, numbers = [""], [UNKNOWN]
        first = NUM_SPECIAL + len(self._source_tokens) + self._num_slots
        before = [first + self._feature_numbers[feature] for feature in features]
        limit = limit_of(len(tokens), self._lengths, search)
        return _Encoded([*before, *numbers], (*features, *tokens), slots, limit)

    def _decoded(self, ids: Sequence[int], slots: Mapping[str, int]) -> list[str]:
        if self._num_slots:
            return tokens_with_slots(ids, self._target_tokens, slots)
        return tokens_of(ids, self._target_tokens)

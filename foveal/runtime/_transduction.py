"""Models from text to text: encode, search in the graph, calibrate, decode.

Axes: B items, S positions, K candidates, T output tokens.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from ._answers import Answer, Attention, Candidate, Source
from ._calibration import Scaling, calibrated
from ._engine import Engine
from ._errors import ExportedModelError
from ._sizes import length_limit, size_class
from ._tokenizer import tokenizer_of
from ._vocabulary import (
    END,
    NUM_SPECIAL,
    numbered,
    tokens_of,
    tokens_with_slots,
    unseen_slots,
    with_slots,
)

_MOST_BEAM = 10_000


class _Encoded(NamedTuple):
    """A source as the graph reads it."""

    tokens: list[int]  # features, then the source
    places: tuple[str, ...]  # the label of each position
    slots: dict[str, int]  # ids of unseen tokens
    limit: int  # the longest output, with the end token


class Search(NamedTuple):
    """Settings of one search."""

    beam_size: int
    length_penalty: float
    max_length: int | None


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
        given = settings["prediction"]
        self.search = Search(given["beam_size"], given["length_penalty"], given["max_length"])
        self.nbest: int = given["nbest"]

    def size(self, source: Source) -> int:
        """Return the number of positions of a source."""
        return len(self._encoded(source, self.search).tokens)

    def encoded(self, source: Source) -> list[int]:
        """Return the token ids of a source, as the graph reads them."""
        return self._encoded(source, self.search).tokens

    def answer(
        self, sources: Sequence[Source], search: Search, nbest: int, *, attention: bool
    ) -> list[Answer]:
        """Answer sources of one size class in one run of the graph.

        Args:
            sources: Texts, and their features.
            search: Settings of the search.
            nbest: Number of candidates of each answer.
            attention: Whether to return the attention.

        Returns:
            An answer for each source.

        Raises:
            ExportedModelError: The settings are out of range, or a source is too long.
        """
        if not 1 <= nbest <= search.beam_size <= _MOST_BEAM:
            raise ExportedModelError(
                f"expected 1 <= nbest <= beam_size <= {_MOST_BEAM}, got nbest={nbest} and "
                f"beam_size={search.beam_size}. Set beam_size={max(nbest, 1)}."
            )
        encoded = [self._encoded(source, search) for source in sources]
        found = self._engine.run(self._inputs(encoded, search))
        probabilities = calibrated(self._scalings, found["totals"])
        return [
            self._answer(number, one, found, probabilities[number], nbest, attention)
            for number, one in enumerate(encoded)
        ]

    def _inputs(self, encoded: Sequence[_Encoded], search: Search) -> dict[str, np.ndarray]:
        size = size_class(max(len(one.tokens) for one in encoded))
        tokens = np.zeros((len(encoded), size), np.int64)
        for row, one in zip(tokens, encoded, strict=True):
            row[: len(one.tokens)] = one.tokens
        return {
            "tokens": tokens,
            "lengths": np.array([len(one.tokens) for one in encoded], np.int32),
            "limits": np.array([one.limit for one in encoded], np.int64),
            "beam_size": np.array([search.beam_size], np.int64),
            "length_penalty": np.array([search.length_penalty], np.float32),
        }

    def _encoded(self, source: Source, search: Search) -> _Encoded:
        tokens = self._source.encode(source.text)
        features = [] if self._features is None else self._features.encode(source.features)
        if len(tokens) + len(features) > self._most:
            raise ExportedModelError(
                f"a source may have at most {self._most} tokens, got {len(tokens) + len(features)}: "
                f"{source.text[:40]!r}. Split it."
            )
        slots = unseen_slots(
            tokens, self._source_numbers, NUM_SPECIAL + len(self._source_tokens), self._num_slots
        )
        numbers = with_slots([self._source_numbers[token] for token in tokens], tokens, slots)
        first = NUM_SPECIAL + len(self._source_tokens) + self._num_slots
        before = [first + self._feature_numbers[feature] for feature in features]
        if search.max_length is not None:
            limit = search.max_length + 1
        else:
            limit = length_limit(len(tokens), self._lengths["ratio"], self._lengths["slack"])
        return _Encoded([*before, *numbers], (*features, *tokens), slots, limit)

    def _answer(
        self,
        number: int,
        encoded: _Encoded,
        found: Mapping[str, Any],
        probabilities: np.ndarray,
        nbest: int,
        attention: bool,
    ) -> Answer:
        scores, lists = found["scores"][number].tolist(), found["outputs"][number].tolist()
        candidates, best = list[Candidate](), list[str]()
        for score, ids, probability in zip(scores, lists, probabilities.tolist(), strict=True):
            if score == -np.inf or len(candidates) == nbest:
                break
            tokens = self._decoded(ids[: encoded.limit - 1], encoded.slots)
            best = best if candidates else tokens
            candidates.append(Candidate(self._target.decode(tokens), score, probability))
        first = candidates[0]
        log_probs = found["log_probs"][number, 0, : len(best)]
        return Answer(
            first.output,
            first.score,
            first.confidence,
            tuple(candidates),
            tuple(np.exp(log_probs).tolist()),
            self._attention(found["weights"][number], encoded, best)
            if attention and "weights" in found
            else None,
        )

    def _decoded(self, ids: Sequence[int], slots: Mapping[str, int]) -> list[str]:
        if END in ids:
            ids = ids[: ids.index(END)]
        if self._num_slots:
            return tokens_with_slots(ids, self._target_tokens, slots)
        return tokens_of(ids, self._target_tokens)

    def _attention(self, weights: np.ndarray, encoded: _Encoded, targets: list[str]) -> Attention:
        rows = weights[: len(targets), : len(encoded.tokens)]
        return Attention(encoded.places, tuple(targets), tuple(map(tuple, rows.tolist())))

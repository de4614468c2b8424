"""Models that label: a tag for each word, or a class for a text.

Axes: B items, S positions, K tags or classes, k candidates.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from ._answers import Answer, Attention, Source
from ._calibration import Scaling, calibrated
from ._chain import Chain
from ._engine import Engine
from ._sizes import size_class
from ._task import Search, check_size, padded, ranked
from .text._spelling import spelling_numbers
from .text._tokenizer import tokenizer_of
from .text._vocabulary import UNKNOWN, numbered


class _Words(NamedTuple):
    """The tokens of a text, their ids, and the ids of their spelling features."""

    tokens: list[str]
    numbers: list[int]
    spelling: list[tuple[int, ...]]


@final
class _Reader:
    """Splits and numbers texts."""

    def __init__(self, settings: Mapping[str, Any], vocabulary: Mapping[str, Any]) -> None:
        self._split = tokenizer_of(settings["source"]).encode
        self._numbers = numbered(vocabulary["source"])
        self._most: int = settings["max_source"]

    def words(self, text: str) -> _Words:
        """Return the tokens of a text and their ids."""
        tokens = self._split(text)
        check_size(text, len(tokens), self._most)
        return _Words(tokens, [self._numbers[token] for token in tokens], [])


@final
class Tagger:
    """An exported model that tags words.

    Args:
        settings: Content of `model.json`.
        vocabulary: Content of `vocabulary.json`.
        engine: The graph that scores the tags of each word.
    """

    def __init__(
        self, settings: Mapping[str, Any], vocabulary: Mapping[str, Any], engine: Engine
    ) -> None:
        self._reader, self._engine = _Reader(settings, vocabulary), engine
        self._labels: list[str] = vocabulary["labels"]
        self._chain = Chain(settings["crf"], len(self._labels))
        self._spelling: Mapping[str, Any] | None = settings["spelling"]
        self._scalings = tuple(Scaling(**each) for each in settings["calibration"])
        self.search = Search.of(settings["prediction"])

    def prepared(self, source: Source, search: Search) -> _Words:
        """Return the words of a text and their ids."""
        del search
        words, given = self._reader.words(source.text), self._spelling
        if given is None:
            return words
        sizes = given["prefixes"], given["suffixes"], given["num_buckets"]
        return words._replace(spelling=[spelling_numbers(word, *sizes) for word in words.tokens])

    def shape(self, prepared: _Words) -> tuple[int, ...]:
        """Return the padded number of words."""
        return (size_class(len(prepared.tokens)),)

    def encoded(self, prepared: _Words) -> list[int]:
        """Return the ids of the words."""
        return prepared.numbers

    def answer(
        self, prepared: Sequence[_Words], search: Search, *, attention: bool
    ) -> list[Answer]:
        """Tag sentences of one padded size; the scores are log-probabilities of whole taggings."""
        del attention  # a tagger has none that explains its tags
        (size,) = self.shape(max(prepared, key=lambda one: len(one.tokens)))
        inputs = padded([one.numbers for one in prepared], size)
        if self._spelling is not None:
            inputs["spelling"] = self._padded_spelling(prepared, size)
        unary = self._engine.run(inputs)["unary"]
        found = self._chain.best(unary, inputs["lengths"], search.beam_size)
        # In float32, as the library returns them.
        log_probs = found.log_probs.astype(np.float32)
        probabilities = calibrated(self._scalings, log_probs)
        answers = list[Answer]()
        for number, one in enumerate(prepared):
            outputs = [
                " ".join(self._labels[tag] for tag in tags)
                for tags in found.tags[number, :, : len(one.tokens)].tolist()
            ]
            candidates = ranked(
                outputs, log_probs[number].tolist(), probabilities[number].tolist(), search.nbest
            )
            of_words = tuple(found.probabilities[number, : len(one.tokens)].tolist())
            answers.append(Answer(*candidates[0], candidates, of_words))
        return answers

    def _padded_spelling(self, prepared: Sequence[_Words], size: int) -> np.ndarray:
        assert self._spelling is not None
        num_features = 2 + self._spelling["prefixes"] + self._spelling["suffixes"]
        rows = np.zeros((len(prepared), size, num_features), np.int64)
        for row, one in zip(rows, prepared, strict=True):
            if one.spelling:
                row[: len(one.spelling)] = one.spelling
        return rows


@final
class Classifier:
    """An exported model that classifies texts; its candidates are all classes.

    Args:
        settings: Content of `model.json`.
        vocabulary: Content of `vocabulary.json`.
        engine: The graph that scores the classes.
    """

    def __init__(
        self, settings: Mapping[str, Any], vocabulary: Mapping[str, Any], engine: Engine
    ) -> None:
        self._reader, self._engine = _Reader(settings, vocabulary), engine
        self._labels: list[str] = vocabulary["labels"]
        self._scalings = tuple(Scaling(**each) for each in settings["calibration"])
        self.search = Search.of(settings["prediction"])

    def prepared(self, source: Source, search: Search) -> _Words:
        """Return the tokens of a text and their ids; an empty text is one unknown token."""
        del search
        words = self._reader.words(source.text)
        return words if words.tokens else _Words([""], [UNKNOWN], [])

    def shape(self, prepared: _Words) -> tuple[int, ...]:
        """Return the padded number of tokens."""
        return (size_class(len(prepared.numbers)),)

    def encoded(self, prepared: _Words) -> list[int]:
        """Return the ids of the tokens."""
        return prepared.numbers

    def answer(
        self, prepared: Sequence[_Words], search: Search, *, attention: bool
    ) -> list[Answer]:
        """Classify texts of one padded size; the scores are log-probabilities."""
        (size,) = self.shape(max(prepared, key=lambda one: len(one.numbers)))
        found = self._engine.run(padded([one.numbers for one in prepared], size))
        order = np.argsort(-found["log_probs"], axis=1, kind="stable")
        log_probs = np.take_along_axis(found["log_probs"], order, 1)
        probabilities = calibrated(self._scalings, log_probs)
        answers = list[Answer]()
        for number, one in enumerate(prepared):
            outputs = [self._labels[label] for label in order[number].tolist()]
            candidates = ranked(
                outputs, log_probs[number].tolist(), probabilities[number].tolist(), search.nbest
            )
            read = None
            if attention and "weights" in found:
                row = found["weights"][number, : len(one.tokens)].tolist()
                read = Attention(tuple(one.tokens), (outputs[0],), (tuple(row),))
            answers.append(Answer(*candidates[0], candidates, (), read))
        return answers

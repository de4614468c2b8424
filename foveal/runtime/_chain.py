"""The best taggings of sentences under a chain of tags, and the probability of each tag.

    score(y) = start[y_1] + sum_t unary[t, y_t] + sum_t transitions[y_t, y_{t+1}] + end[y_T]
    log p(y) = score(y) - log Z

All sentences of a batch take their steps together; the steps after the end of a sentence copy its state. Scores are in
float64, as in the library.

Axes: B sentences, T words, K tags, k taggings.
References: Viterbi 1967; Rabiner 1989 (forward-backward).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np

_FEW = 16  # taggings for which repeated maxima are faster than sorting


class Taggings(NamedTuple):
    """The best taggings of each sentence, best first."""

    tags: np.ndarray  # (B, k, T), of any value after the end of a sentence
    log_probs: np.ndarray  # (B, k), -inf where a sentence has fewer taggings
    probabilities: np.ndarray  # (B, T), of the tags of the best tagging


@final
class Chain:
    """Scores of taggings.

    Args:
        scores: `transitions`, a row for each tag and a column for the tag after it, and `start` and `end`, scores of the
            tags of the first and the last word, or None; None for independent tags.
        num_tags: Number of tags.

    Examples:
        >>> chain = Chain({"transitions": [[1.0, 0.0], [0.0, 1.0]], "start": None, "end": None}, 2)
        >>> found = chain.best(np.array([[[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]]), np.array([3]), 2)
        >>> found.tags.tolist(), found.probabilities.round(4).tolist()
        ([[[1, 1, 1], [0, 0, 0]]], [[0.7682, 0.7042, 0.7682]])
    """

    def __init__(self, scores: Mapping[str, Any] | None, num_tags: int) -> None:
        given = scores or {}
        shapes = {"transitions": (num_tags, num_tags), "start": (num_tags,), "end": (num_tags,)}
        self._transitions, self._start, self._end = (
            np.zeros(shape) if given.get(name) is None else np.array(given[name], np.float64)
            for name, shape in shapes.items()
        )
        for array, (name, shape) in zip(
            (self._transitions, self._start, self._end), shapes.items(), strict=True
        ):
            if array.shape != shape:
                raise TypeError(f"crf.{name} has the shape {array.shape}, expected {shape}")

    def best(self, unary: np.ndarray, lengths: np.ndarray, k: int) -> Taggings:
        """Find the k best taggings of each sentence.

        Args:
            unary: Scores of the tags of each word `(B, T, K)`, of any value after the end of a sentence.
            lengths: Numbers of words `(B)`.
            k: Number of taggings.

        Returns:
            The taggings with their log-probabilities.
        """
        unary = self._bounded(unary[:, : max(1, int(lengths.max()))], lengths)
        tags, scores = self._search(unary, lengths, k)
        log_z, marginals = self._marginals(unary, lengths)
        chosen = np.take_along_axis(marginals, tags[:, 0, :, None], 2)[:, :, 0]
        return Taggings(tags, scores - log_z[:, None], chosen)

    def _bounded(self, unary: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the scores in float64, with those of the ends; a sentence without words has one tagging."""
        places = np.arange(unary.shape[1])
        unary = np.where((places < lengths[:, None])[:, :, None], unary, 0.0).astype(np.float64)
        some = np.flatnonzero(lengths > 0)
        unary[some, 0] += self._start
        unary[some, lengths[some] - 1] += self._end
        unary[lengths == 0, 0, 1:] = -np.inf
        return unary

    def _search(
        self, unary: np.ndarray, lengths: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best taggings `(B, k, T)` and their scores `(B, k)`."""
        num_items, num_words, num_tags = unary.shape
        # The k best taggings of the words so far that end in each tag.
        scores = np.full((num_items, num_tags, k), -np.inf)
        scores[:, :, 0] = unary[:, 0]
        same = np.arange(num_tags * k).reshape(num_tags, k)
        pointers = list[np.ndarray]()  # to the table of the step before, tag * k + rank
        for t in range(1, num_words):
            edges = self._transitions.T + unary[:, t, :, None]  # (B, next, previous)
            ways = scores[:, None] + edges[..., None]  # (B, next, previous, k)
            found, order = _largest(ways.reshape(num_items, num_tags, -1), k)
            goes_on = (lengths > t)[:, None, None]
            pointers.append(np.where(goes_on, order, same).reshape(num_items, -1))
            scores = np.where(goes_on, found, scores)
        best, entries = _largest(scores.reshape(num_items, -1), k)
        tags = [entries // k]
        for pointer in reversed(pointers):
            entries = np.take_along_axis(pointer, entries, 1)
            tags.append(entries // k)
        return np.stack(tags[::-1], -1), best

    def _marginals(self, unary: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log Z `(B)` and the probability of each tag `(B, T, K)`."""
        num_words = unary.shape[1]
        ahead, back = np.empty_like(unary), np.zeros_like(unary)
        ahead[:, 0] = unary[:, 0]
        for t in range(1, num_words):
            sums = _log_sum(ahead[:, t - 1, None, :] + self._transitions.T) + unary[:, t]
            ahead[:, t] = np.where((lengths > t)[:, None], sums, ahead[:, t - 1])
        for t in range(num_words - 2, -1, -1):
            after = (unary[:, t + 1] + back[:, t + 1])[:, None, :] + self._transitions
            back[:, t] = np.where((lengths > t + 1)[:, None], _log_sum(after), 0.0)
        log_z = _log_sum(ahead[:, -1])
        return log_z, np.exp(ahead + back - log_z[:, None, None])


def _largest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest entries of the last axis, sorted, and their places; of equal entries, the first is first."""
    if k > _FEW:
        places = np.argsort(-scores, axis=-1, kind="stable")[..., :k]
        return np.take_along_axis(scores, places, -1), places
    left, found, places = scores.copy(), list[np.ndarray](), list[np.ndarray]()
    for _ in range(k):
        place = left.argmax(-1)[..., None]
        found.append(np.take_along_axis(left, place, -1))
        places.append(place)
        np.put_along_axis(left, place, -np.inf, -1)
    return np.concatenate(found, -1), np.concatenate(places, -1)


def _log_sum(scores: np.ndarray) -> np.ndarray:
    """Return the log-sum-exp over the last axis; one entry at least is finite."""
    highest = scores.max(-1)
    return highest + np.log(np.exp(scores - highest[..., None]).sum(-1))

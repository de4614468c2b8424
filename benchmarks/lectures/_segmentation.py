"""Word boundaries that attention finds in unsegmented text, beside those that the corpus has.

A *place* lies between two neighboring characters of a sentence. While a model writes its own translation
each of its words reads some characters, and that says something about every place:

    chosen    a run of characters that some word reads, in its most probable selection, begins or ends here
    unlike    sum_t |w[t, s] - w[t, s+1]| / sum_t (w[t, s] + w[t, s+1])

The second is how differently the two neighbors of place s are read: 0 if every word reads both as much,
1 if none reads both. Boundaries are then the places above a threshold, set so that on development
sentences there are as many of them as the corpus has.

    precision, recall, F1    of boundaries, the ends of sentences not counted
    words F1                 of whole words: both ends right, and nothing between them
    ranked                   how often a boundary comes before a place inside a word, ties by halves;
                             50 % is chance, whatever the threshold and however many boundaries there are

Axes: T words of an output, S characters, P = S - 1 places.
"""

import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
from jaxtyping import Bool, Float

from foveal.attention import AttentionTrace
from foveal.data import CharacterSpec
from foveal.metrics import span_f1

SCRIPTS = ("HIRAGANA", "KATAKANA", "CJK")
CHARACTERS = CharacterSpec(spaces="drop")
BOUNDARY, INSIDE = "B-word", "I-word"


def corpus_boundaries(text: str) -> Bool[np.ndarray, " P"]:
    """Where the corpus, which has spaces between words, ends one.

    >>> corpus_boundaries("つら い 人生").tolist()
    [False, True, True, False]
    """
    lengths = [len(CHARACTERS.encode(word)) for word in text.split()]
    found = np.zeros(max(sum(lengths) - 1, 0), bool)
    found[np.cumsum(lengths)[:-1] - 1] = True
    return found


def chosen_boundaries(trace: AttentionTrace) -> Bool[np.ndarray, " P"]:
    """Where a run of selected characters begins or ends, for any word of the output."""
    best = np.array(trace.best, bool)[:-1]  # the last row is that of the end, which is no word
    return (best[:, 1:] != best[:, :-1]).any(0)


def unlike_neighbors(trace: AttentionTrace) -> Float[np.ndarray, " P"]:
    """How differently the two characters of each place are read."""
    weights = np.array(trace.weights)[:-1]
    apart = np.abs(weights[:, 1:] - weights[:, :-1]).sum(0)
    together = (weights[:, 1:] + weights[:, :-1]).sum(0)
    return apart / np.maximum(together, np.finfo(np.float64).tiny)


def script_changes(text: str) -> Bool[np.ndarray, " P"]:
    """Where kana, kanji and all else meet, which asks nothing of a model.

    >>> script_changes("人生 を").tolist()
    [False, True]
    """
    scripts = [_script(character) for character in CHARACTERS.encode(text)]
    return np.array([first != second for first, second in pairwise(scripts)], bool)


def random_boundaries(
    gold: Sequence[Bool[np.ndarray, " _"]], share: float
) -> list[Bool[np.ndarray, " _"]]:
    """Each place of each sentence with the same chance."""
    chance = Random(0)
    return [np.array([chance.random() < share for _ in one], bool) for one in gold]


def threshold_for(
    scores: Sequence[Float[np.ndarray, " _"]], gold: Sequence[Bool[np.ndarray, " _"]]
) -> float:
    """The score that as many places are above as there are boundaries."""
    share = np.concatenate(gold).mean()
    return float(np.quantile(np.concatenate(scores), 1 - share))


def boundary_scores(
    gold: Sequence[Bool[np.ndarray, " _"]], found: Sequence[Bool[np.ndarray, " _"]]
) -> dict[str, float]:
    """Precision, recall and F1 of boundaries, and F1 of words, in per cent."""
    right, all_found, all_gold = (
        np.concatenate(each).sum()
        for each in ([a & b for a, b in zip(gold, found, strict=True)], found, gold)
    )
    return {
        "precision": 100 * right / max(all_found, 1),
        "recall": 100 * right / max(all_gold, 1),
        "F1": 200 * right / max(all_found + all_gold, 1),
        "words F1": span_f1([_tags(each) for each in gold], [_tags(each) for each in found]).value,
    }


def ranked(
    gold: Sequence[Bool[np.ndarray, " _"]], scores: Sequence[Float[np.ndarray, " _"]]
) -> float:
    """The share of pairs of a boundary and another place in which the boundary has the higher score
    (the area under the curve of Mann and Whitney), in per cent.

    >>> round(ranked([np.array([True, False, False])], [np.array([0.5, 0.1, 0.5])]), 1)
    75.0
    """
    is_gold, all_scores = np.concatenate(gold), np.concatenate(scores)
    inside = np.sort(all_scores[~is_gold])
    below, up_to = (
        np.searchsorted(inside, all_scores[is_gold], side).sum() for side in ("left", "right")
    )
    return 50 * float(below + up_to) / max(is_gold.sum() * len(inside), 1)


def _script(character: str) -> str:
    name = unicodedata.name(character[0], "")
    return next((script for script in SCRIPTS if name.startswith(script)), "other")


def _tags(boundaries: Bool[np.ndarray, " P"]) -> list[str]:
    """The characters of a sentence as beginnings and insides of words."""
    return [BOUNDARY, *(BOUNDARY if each else INSIDE for each in boundaries)]

"""Word boundaries that attention finds in unsegmented text, compared with the boundaries of the corpus.

A *gap* lies between two neighboring characters of a sentence. When a model translates, each output word
attends to some characters, and these weights give two scores of every gap:

    chosen    some word's most probable selection has a run of characters that begins or ends at this gap
    unlike    sum_t |w[t, s] - w[t, s+1]| / sum_t (w[t, s] + w[t, s+1])

`unlike` is the relative difference of the attention to the two neighbors of gap s: 0 if every word attends
to both equally, 1 if no word attends to both. The predicted boundaries are the gaps above a threshold; the
threshold makes their number on development sentences equal to the number in the corpus.

    precision, recall, F1    for boundaries, not counting the ends of sentences
    words F1                 for whole words: both ends correct, and no boundary inside
    ranked                   how often a boundary has a higher score than a gap inside a word, ties count
                             half; chance is 50 % for every threshold and every number of boundaries

Axes: T words of an output, S characters, P = S - 1 gaps.
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
    """Return the boundaries of the corpus, which has spaces between words.

    >>> corpus_boundaries("つら い 人生").tolist()
    [False, True, True, False]
    """
    lengths = [len(CHARACTERS.encode(word)) for word in text.split()]
    found = np.zeros(max(sum(lengths) - 1, 0), bool)
    found[np.cumsum(lengths)[:-1] - 1] = True
    return found


def chosen_boundaries(trace: AttentionTrace) -> Bool[np.ndarray, " P"]:
    """Return the gaps where a run of selected characters begins or ends, for any word of the output."""
    best = np.array(trace.best, bool)[:-1]  # the last row is the end token, not a word
    return (best[:, 1:] != best[:, :-1]).any(0)


def unlike_neighbors(trace: AttentionTrace) -> Float[np.ndarray, " P"]:
    """Return the relative difference of the attention to the two characters of each gap."""
    weights = np.array(trace.weights)[:-1]
    apart = np.abs(weights[:, 1:] - weights[:, :-1]).sum(0)
    together = (weights[:, 1:] + weights[:, :-1]).sum(0)
    return apart / np.maximum(together, np.finfo(np.float64).tiny)


def script_changes(text: str) -> Bool[np.ndarray, " P"]:
    """Return the gaps between kana, kanji and other characters, a baseline without a model.

    >>> script_changes("人生 を").tolist()
    [False, True]
    """
    scripts = [_script(character) for character in CHARACTERS.encode(text)]
    return np.array([first != second for first, second in pairwise(scripts)], bool)


def random_boundaries(
    gold: Sequence[Bool[np.ndarray, " _"]], share: float
) -> list[Bool[np.ndarray, " _"]]:
    """Draw each gap of each sentence with the same probability."""
    chance = Random(0)
    return [np.array([chance.random() < share for _ in one], bool) for one in gold]


def threshold_for(
    scores: Sequence[Float[np.ndarray, " _"]], gold: Sequence[Bool[np.ndarray, " _"]]
) -> float:
    """Return the threshold above which the number of gaps equals the number of boundaries."""
    share = np.concatenate(gold).mean()
    return float(np.quantile(np.concatenate(scores), 1 - share))


def boundary_scores(
    gold: Sequence[Bool[np.ndarray, " _"]], found: Sequence[Bool[np.ndarray, " _"]]
) -> dict[str, float]:
    """Compute precision, recall and F1 of boundaries, and F1 of words, in per cent."""
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
    """Compute the percentage of pairs of a boundary and another gap in which the boundary has the higher
    score (the area under the ROC curve, Mann and Whitney).

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
    """Tag the characters of a sentence as begin or inside of a word."""
    return [BOUNDARY, *(BOUNDARY if each else INSIDE for each in boundaries)]

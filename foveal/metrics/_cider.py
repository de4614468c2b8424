"""CIDEr-D: the similarity of a caption and its references, weighted by the specificity of their n-grams.

    g_n(text)[w] = count of w * log( N / number of images with w in a reference )
    similarity = sum over w of min(g_n(output)[w], g_n(reference)[w]) g_n(reference)[w] / (|g_n(output)| |g_n(reference)|)
    score = 10 * mean over references and n of exp( - (difference of lengths)^2 / (2 * 6^2) ) * similarity

over n-grams w of n = 1 to 4 tokens and N images, in percent as in papers on captioning: equal texts score 1000.

Reference: Vedantam et al. 2015.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ._statistics import Statistics, check_pairs, each_of

_LONGEST = 4  # tokens of an n-gram
_SIGMA = 6.0  # tokens

Grams = Counter[tuple[str, ...]]


def cider(references: Sequence[str | Sequence[str]], hypotheses: Sequence[str]) -> Statistics:
    """Compute the mean CIDEr-D of outputs, each against one or more references. Tokens are separated by whitespace.

    Args:
        references: References, one or several for each output.
        hypotheses: Outputs, in the same order.

    Returns:
        The score times 100, as statistics of each output.

    Raises:
        ShapeError: The numbers of references and outputs differ, or are 0.

    Examples:
        >>> round(cider(["a red cat", "a blue dog"], ["a red cat", "a red dog"]).value, 1)
        437.5
        >>> round(cider([["a red cat", "a cat"], "a blue dog"], ["a red cat", "a red dog"]).value, 1)
        293.6
    """
    check_pairs("cider", len(references), len(hypotheses))
    expected = [[text.split() for text in texts] for texts in each_of(references)]
    occurs: Grams = Counter()
    for texts in expected:
        occurs.update({gram for tokens in texts for gram in _all_grams(tokens)})
    rows = [
        (_score(texts, output.split(), occurs, len(references)), 1)
        for texts, output in zip(expected, hypotheses, strict=True)
    ]
    return Statistics(
        name="cider",
        rows=np.array(rows, dtype=np.float64),
        score=lambda sums: 100 * sums[:, 0] / np.maximum(sums[:, 1], 1),
        signature="CIDEr-D x 100, n-grams of 1 to 4 tokens",
        higher_is_better=True,
    )


def _grams(tokens: Sequence[str], n: int) -> Grams:
    return Counter(tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))


def _all_grams(tokens: Sequence[str]) -> set[tuple[str, ...]]:
    return {gram for n in range(1, _LONGEST + 1) for gram in _grams(tokens, n)}


def _score(
    references: Sequence[list[str]], output: list[str], occurs: Grams, num_pictures: int
) -> float:
    def weight(gram: tuple[str, ...]) -> float:
        return math.log(num_pictures) - math.log(max(1, occurs[gram]))

    total = 0.0
    for reference in references:
        penalty = math.exp(-((len(output) - len(reference)) ** 2) / (2 * _SIGMA**2))
        for n in range(1, _LONGEST + 1):
            ours, theirs = _grams(output, n), _grams(reference, n)
            norms = [
                math.sqrt(sum((count * weight(gram)) ** 2 for gram, count in grams.items()))
                for grams in (ours, theirs)
            ]
            common = sum(
                min(count, theirs[gram]) * theirs[gram] * weight(gram) ** 2
                for gram, count in ours.items()
            )
            if norms[0] > 0 and norms[1] > 0:
                total += penalty * common / (norms[0] * norms[1])
    return 10 * total / (_LONGEST * len(references))

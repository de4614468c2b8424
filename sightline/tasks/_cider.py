"""CIDEr-D: how much a caption has of what is particular to its reference.

    g_n(text)[w] = min(count of w, that of the reference) * log( N / number of references with w )
    score = 10 * mean over n of exp( - (difference of lengths)^2 / (2 * 6^2) ) * cos( g_n(output), g_n(reference) )

over n-grams w of n = 1 to 4 tokens, in per cent as captions are compared: equal texts have 1000. A picture
with several references is several examples; the mean over them is the metric's own.

Reference: Vedantam et al. 2015.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ._statistics import Statistics, check_pairs

_LONGEST = 4  # tokens of an n-gram
_SIGMA = 6.0  # tokens

Grams = Counter[tuple[str, ...]]


def cider(references: Sequence[str], hypotheses: Sequence[str]) -> Statistics:
    """CIDEr-D of each output against its reference, averaged; tokens stand between spaces.

    >>> round(cider(["a red cat", "a blue dog"], ["a red cat", "a red dog"]).value, 1)
    437.5
    """
    check_pairs("cider", len(references), len(hypotheses))
    expected = [text.split() for text in references]
    occurs: Grams = Counter()
    for tokens in expected:
        for n in range(1, _LONGEST + 1):
            occurs.update(set(_grams(tokens, n)))
    rows = [
        (_score(reference, text.split(), occurs, len(references)), 1)
        for reference, text in zip(expected, hypotheses, strict=True)
    ]
    return Statistics(
        name="cider",
        rows=np.array(rows, dtype=np.float64),
        score=lambda sums: 100 * sums[:, 0] / np.maximum(sums[:, 1], 1),
        signature="CIDEr-D x 100, n-grams of 1 to 4 tokens, one reference for each output",
        higher_is_better=True,
    )


def _grams(tokens: Sequence[str], n: int) -> Grams:
    return Counter(tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))


def _score(reference: list[str], output: list[str], occurs: Grams, num_texts: int) -> float:
    penalty = math.exp(-((len(output) - len(reference)) ** 2) / (2 * _SIGMA**2))
    total = 0.0
    for n in range(1, _LONGEST + 1):
        ours, theirs = _grams(output, n), _grams(reference, n)

        def weight(gram: tuple[str, ...]) -> float:
            return math.log(num_texts) - math.log(max(1, occurs[gram]))

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
    return 10 * total / _LONGEST

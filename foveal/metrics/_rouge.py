"""ROUGE: overlap of a summary with its reference, as the F-measure of n-grams or of a longest common subsequence.

    P = overlap / size of the output,   R = overlap / size of the reference,   F = 2 P R / (P + R)

    ROUGE-1, ROUGE-2   overlap: n-grams in both texts, each counted at most as often as in the other text
    ROUGE-L            overlap: length of the longest common subsequence of tokens

With several references, the best counts. The score of a set is the mean over its outputs. The figures equal those of
the package rouge-score 0.1.2 without its stemmer; the package is not used, because it depends on nltk.

Axes: N examples, R sums of rows.
Reference: Lin 2004, ROUGE: A package for automatic evaluation of summaries.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float
from rapidfuzz.distance import LCSseq

from ._statistics import Statistics, check_pairs, each_of

Overlap: TypeAlias = Literal["1", "2", "L"]
_WORDS = re.compile(r"[a-z0-9]+").findall


def rouge(
    references: Sequence[str | Sequence[str]],
    hypotheses: Sequence[str],
    *,
    overlap: Overlap = "L",
    tokenize: Literal["english", "none"] = "english",
) -> Statistics:
    """Compute ROUGE-1, ROUGE-2 or ROUGE-L.

    Args:
        references: References, one or several for each output. The reference with the highest score counts.
        hypotheses: Outputs, in the same order.
        overlap: The units that texts share: "1" for words, "2" for pairs of words, "L" for the longest common
            subsequence.
        tokenize: "english" for lowercase runs of the letters a to z and digits, as in rouge-score; "none" for
            whitespace-separated tokens, for example in other scripts.

    Returns:
        The mean F-measure in percent.

    Raises:
        ShapeError: The numbers of references and outputs differ, or are 0.

    Examples:
        >>> rouge(["the cat sat"], ["The cat ran."], overlap="1").value.__round__(1)
        66.7
        >>> rouge([["a b c", "x y"]], ["x y z"], overlap="2").value.__round__(1)
        66.7
    """
    check_pairs("rouge", len(references), len(hypotheses))
    rows = [
        (
            max(
                _f_measure(_tokens(one, tokenize), _tokens(output, tokenize), overlap)
                for one in texts
            ),
            1,
        )
        for texts, output in zip(each_of(references), hypotheses, strict=True)
    ]
    return Statistics(
        name=f"rouge{overlap}",
        rows=np.array(rows, dtype=np.float64),
        score=_mean,
        signature=f"ROUGE-{overlap}, F-measure, no stemming, tokens {tokenize}, best of several references",
        higher_is_better=True,
    )


def _tokens(text: str, tokenize: Literal["english", "none"]) -> list[str]:
    return _WORDS(text.lower()) if tokenize == "english" else text.split()


def _f_measure(reference: list[str], output: list[str], overlap: Overlap) -> float:
    if overlap == "L":
        shared, sizes = LCSseq.similarity(reference, output), (len(reference), len(output))
    else:
        wanted, found = (_ngrams(tokens, int(overlap)) for tokens in (reference, output))
        shared, sizes = (wanted & found).total(), (wanted.total(), found.total())
    return 2 * shared / max(sum(sizes), 1)  # 2 P R / (P + R)


def _ngrams(tokens: list[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(size)), strict=False))


def _mean(sums: Float[np.ndarray, "R F"]) -> Float[np.ndarray, " R"]:
    return 100 * sums[:, 0] / sums[:, 1]

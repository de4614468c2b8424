"""Scores of word alignments against gold alignments (Och and Ney 2003).

    A predicted links, S sure links, P possible links (including S)

    precision = |A & P| / |A|       recall = |A & S| / |S|
    AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)

over the links of all pairs together, in percent, with the 95 % bootstrap interval over pairs.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from ..data.formats._links import Gold, Link
from ..errors import ShapeError
from ._intervals import Metric, measure
from ._statistics import Statistics

# Maps sums of counts to scores, many at a time.
Score: TypeAlias = Callable[[Float[np.ndarray, "R 4"]], Float[np.ndarray, " R"]]


class AlignmentScores(NamedTuple):
    """Scores of the links of some pairs, and the numbers of links."""

    aer: Metric  # alignment error rate: lower is better
    precision: Metric
    recall: Metric
    f1: Metric
    num_links: int
    num_sure: int
    num_possible: int  # including the sure links


def alignment_scores(links: Sequence[Collection[Link]], gold: Sequence[Gold]) -> AlignmentScores:
    """Compute the scores of predicted links against gold links.

    Args:
        links: Predicted links of each pair of sentences, as pairs of source and target positions counted from 0.
        gold: Gold links of each pair of sentences, sure and possible.

    Returns:
        Alignment error rate, precision, recall and F1 in percent, each with its confidence interval, and the numbers of
        links.

    Raises:
        ShapeError: The numbers of alignments and gold alignments differ, or are 0.

    Examples:
        >>> known = Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)}))
        >>> scores = alignment_scores([{(0, 0), (1, 2), (2, 2)}], [known])
        >>> [round(one.value, 2) for one in (scores.precision, scores.recall, scores.aer)]    # 2/3, 1/2, 1 - 3/5
        [66.67, 50.0, 40.0]
    """
    if len(links) != len(gold) or not gold:
        raise ShapeError(
            f"alignment_scores: got {len(links)} alignments and gold links for {len(gold)} pairs, "
            f"expected equal numbers of at least 1. Score the pairs of the gold file."
        )
    rows = np.array([_counts(frozenset(a), *g) for a, g in zip(links, gold, strict=True)])
    total = rows.sum(0)
    return AlignmentScores(
        measure(_statistics("aer", rows, _aer)),
        measure(_statistics("precision", rows, _precision)),
        measure(_statistics("recall", rows, _recall)),
        measure(_statistics("f1", rows, _f1)),
        num_links=int(total[2]),
        num_sure=int(total[3]),
        num_possible=sum(len(one.possible) for one in gold),
    )


def _counts(
    found: frozenset[Link], sure: frozenset[Link], possible: frozenset[Link]
) -> tuple[float, ...]:
    """Return |A & S|, |A & P|, |A|, |S| of one pair."""
    parts = found & sure, found & possible, found, sure
    return tuple(float(len(part)) for part in parts)


def _statistics(name: str, rows: Float[np.ndarray, "N 4"], score: Score) -> Statistics:
    return Statistics(
        name=name,
        rows=rows,
        score=score,
        signature="links of all pairs, sure and possible",
        higher_is_better=name != "aer",
    )


def _aer(sums: Float[np.ndarray, "R 4"]) -> Float[np.ndarray, " R"]:
    right = sums[:, 0] + sums[:, 1]
    both = sums[:, 2] + sums[:, 3]
    # Without predicted and sure links there is no error.
    return 100 * (1 - np.divide(right, both, out=np.ones_like(both), where=both > 0))


def _precision(sums: Float[np.ndarray, "R 4"]) -> Float[np.ndarray, " R"]:
    return 100 * _share(sums[:, 1], sums[:, 2])


def _recall(sums: Float[np.ndarray, "R 4"]) -> Float[np.ndarray, " R"]:
    return 100 * _share(sums[:, 0], sums[:, 3])


def _f1(sums: Float[np.ndarray, "R 4"]) -> Float[np.ndarray, " R"]:
    """Compute the harmonic mean of precision and recall."""
    precision, recall = _precision(sums), _recall(sums)
    return 2 * _share(precision * recall, precision + recall)


def _share(
    part: Float[np.ndarray, " R"], whole: Float[np.ndarray, " R"]
) -> Float[np.ndarray, " R"]:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)

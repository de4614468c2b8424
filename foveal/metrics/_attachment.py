"""Attachment scores of dependency trees, over all words including punctuation.

    UAS   words with the correct head, in percent
    LAS   words with the correct head and the correct label

Reference: Buchholz and Marsi 2006 (CoNLL-X shared task). The CoNLL 2018 shared task compares labels without
their subtypes; here `nsubj:pass` and `nsubj` differ.
"""

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ._statistics import Statistics, check_pairs


def attachment_score(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]], *, labeled: bool
) -> Statistics:
    """Compute the unlabeled or labeled attachment score (UAS or LAS).

    Args:
        references: Arcs of each sentence, one per word. An arc is its head and its label, `2:nsubj`.
        hypotheses: Predicted arcs of each sentence.
        labeled: If True, the label must be correct too (LAS).

    Returns:
        The percentage of words with the correct arc, as statistics of each sentence.

    Raises:
        ShapeError: The numbers of sentences, or of arcs of a sentence, differ, or there are no sentences.

    Examples:
        >>> gold, found = (("2:nsubj", "0:root", "2:obj"),), (("2:obj", "0:root", "1:obj"),)
        >>> round(attachment_score(gold, found, labeled=False).value, 1)
        66.7
        >>> round(attachment_score(gold, found, labeled=True).value, 1)
        33.3
    """
    check_pairs("attachment_score", len(references), len(hypotheses))
    rows = []
    for number, (gold, found) in enumerate(zip(references, hypotheses, strict=True)):
        if len(gold) != len(found):
            raise ShapeError(
                f"attachment_score: expected an arc for each of the {len(gold)} words of sentence {number}, "
                f"got {len(found)} arcs. Compare parses of the same words."
            )
        pairs = zip(gold, found, strict=True)
        right = sum(g == f if labeled else _head(g) == _head(f) for g, f in pairs)
        rows.append((right, len(gold)))
    return Statistics(
        name="las" if labeled else "uas",
        rows=np.array(rows, dtype=np.float64),
        score=_percentage,
        signature=f"words with the correct head{' and label' if labeled else ''}, punctuation included",
        higher_is_better=True,
    )


def _head(arc: str) -> str:
    return arc.partition(":")[0]


def _percentage(sums: np.ndarray) -> np.ndarray:
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)

"""Minimum Bayes risk decoding: the output that is most similar to all other outputs.

    utility(y) = sum_n p(y_n) similarity(y, y_n),    p over the N outputs of an item

The most probable output can be an outlier; the output closest to many good ones is often better.
Reference: Kumar and Byrne 2004; over samples, Eikema and Aziz 2022.

Axes: B items, N outputs of each.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor

from ..errors import ValueRangeError
from ..extras import required
from ._hypotheses import Hypotheses

Similarity = Callable[[Sequence[int], Sequence[int]], float]


@cache
def _levenshtein() -> Any:
    return required("toolkit", "rapidfuzz.distance", needed_by="edit_similarity").Levenshtein


@cache
def _chrf() -> Any:
    """Build chrF: n-grams up to 6 characters, with recall weighted twice."""
    return required("toolkit", "sacrebleu.metrics.chrf", needed_by="ngram_similarity").CHRF()


def edit_similarity(one: Sequence[int], other: Sequence[int]) -> float:
    """Compute 1 minus the edit distance divided by the longer length.

    Phone, character and word error rates count the same edits. It suits short outputs with a fixed order:
    pronunciations, transliterations, inflected forms.

    Args:
        one: Token ids of an output.
        other: Token ids of another output.

    Returns:
        A number from 0 to 1; 1 if the outputs are equal.

    Examples:
        >>> edit_similarity([1, 2, 3], [1, 3])
        0.6666666666666667
    """
    return _levenshtein().normalized_similarity(one, other)


def ngram_similarity(one: Sequence[int], other: Sequence[int]) -> float:
    """Compute chrF over tokens: the F-score of n-grams up to 6 tokens, between 0 and 1.

    It suits translations, where a phrase may move and still be correct. With characters as tokens it
    equals chrF.

    Args:
        one: Token ids of an output.
        other: Token ids of the output that counts as the reference.

    Returns:
        A number from 0 to 1; 1 if the outputs are equal.

    Examples:
        >>> ngram_similarity([5, 6, 7], [5, 6, 7]), ngram_similarity([5], [6])
        (1.0, 0.0)
    """
    if list(one) == list(other):  # chrF of two empty outputs is 0
        return 1.0
    return _chrf().sentence_score(_text(one), [_text(other)]).score / 100


def minimum_bayes_risk(
    hypotheses: Hypotheses,
    *,
    end: int,
    similarity: Similarity = edit_similarity,
    weigh_by: Literal["probability", "count"] = "probability",
) -> Hypotheses:
    """Sort the outputs by utility, highest first; scores become utilities.

    Args:
        hypotheses: An n-best list, or samples.
        end: The end symbol, which is ignored.
        similarity: Similarity of two outputs, as lists of tokens.
        weigh_by: "probability" for distinct outputs (beam search, stochastic beam search), "count" for
            independent samples, which repeat likely outputs.

    Returns:
        The same outputs in the new order.

    Raises:
        ValueRangeError: If `weigh_by` has another value.
    """
    if weigh_by not in ("probability", "count"):
        raise ValueRangeError(
            f"minimum_bayes_risk: weigh_by must be 'probability' or 'count', got {weigh_by!r}."
        )
    there = hypotheses.lengths > 0
    totals = hypotheses.totals if weigh_by == "probability" else torch.zeros_like(hypotheses.scores)
    shares = totals.masked_fill(~there, -torch.inf).softmax(-1)
    lists = hypotheses.token_lists(end)
    table = torch.tensor(
        [[[similarity(one, other) for other in rows] for one in rows] for rows in lists],
        dtype=shares.dtype,
        device=shares.device,
    )
    utilities = (table * shares.unsqueeze(1)).sum(-1).masked_fill(~there, -torch.inf)
    scores, order = utilities.sort(dim=-1, descending=True, stable=True)

    def ordered(part: Tensor) -> Tensor:
        index = order[(...,) + (None,) * (part.ndim - 2)].expand(*order.shape, *part.shape[2:])
        return part.gather(1, index)

    tokens, lengths, _, log_probs, weights = hypotheses
    return Hypotheses(
        ordered(tokens),
        ordered(lengths),
        scores,
        ordered(log_probs),
        None if weights is None else ordered(weights),
    )


def _text(tokens: Sequence[int]) -> str:
    """Map each token to a character of the private use planes, which is neither a space nor combining."""
    return "".join(chr(0xF0000 + token) for token in tokens)

"""Comparison of two predictions for one example, by two engines.

Engines round differently. Numbers may differ by 1e-4, and candidates whose scores differ by at most as much may change
places, also with the first candidate that is not in the list.
"""

import math
from collections.abc import Sequence

from ..attention import AttentionTrace
from ..tasks import Prediction

_NEAR = 1e-4
_RELATIVE = 1e-5  # of scores, which are sums over many tokens
_SHOWN = 40  # characters of an output


def disagreement(found: Prediction, expected: Prediction) -> str | None:
    """Return the first difference that rounding does not explain; None if there is none.

    Args:
        found: The prediction to test.
        expected: The prediction to compare it with.

    Returns:
        A clause for a message.

    Examples:
        >>> from foveal.tasks.base._prediction import Candidate
        >>> candidates = [Candidate(text, -1.0, 0.5) for text in "ab"]
        >>> one, other = (Prediction(*candidate, (candidate,)) for candidate in candidates)
        >>> disagreement(one, one), disagreement(one, other)
        (None, "the output is 'a', expected 'b'")
    """
    same = [each.score for each in expected.nbest if each.output == found.output]
    if not any(_is_near(found.score, score) for score in same):
        return f"the output is {found.output[:_SHOWN]!r}, expected {expected.output[:_SHOWN]!r}"
    return _of_candidates(found, expected) or (
        _of_best(found, expected) if found.output == expected.output else None
    )


def _of_candidates(found: Prediction, expected: Prediction) -> str | None:
    """Compare the n-best lists."""
    different = _of_numbers(*([one.score for one in each.nbest] for each in (found, expected)))
    if different is not None:
        return f"scores: {different}"
    different = _of_numbers(
        *([one.probability for one in each.nbest] for each in (found, expected))
    )
    if different is not None:
        return f"probabilities: {different}"
    worst = expected.nbest[-1].score
    for one in found.nbest:
        scores = [worst, *(each.score for each in expected.nbest if each.output == one.output)]
        if not any(_is_near(one.score, score) for score in scores):
            return f"the list of outputs contains {one.output[:_SHOWN]!r}, which was not expected"
    return None


def _of_best(found: Prediction, expected: Prediction) -> str | None:
    """Compare the parts of predictions with the same output."""
    figures = {
        "confidence": ([found.confidence], [expected.confidence]),
        "token probabilities": (found.token_probabilities, expected.token_probabilities),
    }
    for name, pair in figures.items():
        different = _of_numbers(*pair)
        if different is not None:
            return f"{name}: {different}"
    return _of_traces(found.trace, expected.trace)


def _of_traces(found: AttentionTrace | None, expected: AttentionTrace | None) -> str | None:
    if found is None or expected is None:
        return None if found is expected else "one answer has attention, the other has none"
    for name in ("kind", "sources", "targets", "layout"):
        ours, theirs = vars(found)[name], vars(expected)[name]
        if ours != theirs:
            return f"attention.{name} is {ours!r}, expected {theirs!r}"
    rows = zip(found.weights, expected.weights, strict=True)
    different = next(filter(None, (_of_numbers(*pair) for pair in rows)), None)
    return None if different is None else f"attention: {different}"


def _of_numbers(found: Sequence[float], expected: Sequence[float]) -> str | None:
    """Compare two rows of numbers."""
    if len(found) != len(expected):
        return f"got {len(found)} numbers, expected {len(expected)}"
    for ours, theirs in zip(found, expected, strict=True):
        if not _is_near(ours, theirs):
            return f"got {ours:.6g}, expected {theirs:.6g}"
    return None


def _is_near(found: float, expected: float) -> bool:
    """Return whether two numbers are equal up to rounding; NaN equals nothing."""
    return math.isclose(found, expected, rel_tol=_RELATIVE, abs_tol=_NEAR)

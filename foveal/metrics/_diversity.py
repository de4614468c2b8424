"""Diversity of generated texts.

    distinct-n = number of different n-grams / number of all n-grams, over all outputs

Reference: Li et al. 2016, A diversity-promoting objective function for neural conversation models.
"""

from collections.abc import Sequence
from itertools import islice

from ..errors import ValueRangeError


def distinct_n(outputs: Sequence[str], n: int) -> float:
    """Compute the percentage of n-grams that are different, over all outputs. Tokens are separated by whitespace.

    A model that repeats one answer has a value near 0. The value falls with the number of outputs, so compare models only
    on the same inputs.

    Args:
        outputs: Generated texts.
        n: Number of tokens of an n-gram, at least 1.

    Returns:
        The percentage; 0 if no output has n tokens.

    Raises:
        ValueRangeError: n is less than 1.

    Examples:
        >>> distinct_n(["i see", "i see", "i know"], 1)
        50.0
    """
    if n < 1:
        raise ValueRangeError(f"distinct_n: n must be at least 1, got {n}. Pass 1 or 2.")
    grams = [gram for output in outputs for gram in _grams(output.split(), n)]
    return 100 * len(set(grams)) / len(grams) if grams else 0.0


def _grams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(islice(tokens, start, None) for start in range(n)), strict=False))

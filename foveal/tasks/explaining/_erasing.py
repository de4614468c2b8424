"""Copies of an input, each with one erased position.

Axes: S positions of the input, R = S + 1 inputs: the whole input, then one input for each erased position.
"""

from jaxtyping import Int
from torch import Tensor

from ...data.vocabularies._vocabulary import UNKNOWN


def with_each_unknown(source: Int[Tensor, "1 S"]) -> Int[Tensor, "R S"]:
    """Return the input, followed by one copy for each erased position."""
    size = source.shape[1]
    rows = source.repeat(size + 1, 1)
    rows[1:].fill_diagonal_(UNKNOWN)
    return rows

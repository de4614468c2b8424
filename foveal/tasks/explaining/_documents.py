"""Explain a text that was generated from a document: the attention to its words and to its sentences.

Axes: S positions of the memory, sentence by sentence, each padded to the longest sentence.
"""

import math
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from ...attention import AttentionTrace, Layout
from ...views._sentences import in_a_row, words_of
from ._explanation import Explanation


def real_places(sources: tuple[str, ...], layout: Layout) -> list[int]:
    """Return the positions that hold a token: all of them, except for the padding of sentences."""
    if layout.kind != "sentences":
        return list(range(len(sources)))
    whole = AttentionTrace(kind="", sources=sources, targets=(), weights=(), layout=layout)
    return [place for places in words_of(whole) for place in places] or [0]


def spread(row: Float[Tensor, " N"], places: list[int], size: int) -> Float[Tensor, " S"]:
    """Return the weights of all positions, given the weights of these places."""
    whole = row.new_zeros(size)
    whole[places] = row
    return whole


def of_words(explanation: Explanation) -> Explanation:
    """Leave out the padding of sentences, and add the attention of the whole output to each sentence.

    Args:
        explanation: Explanation whose positions may be sentences of words.

    Returns:
        The same explanation if its positions are not sentences. Otherwise its positions are the words in a row, and
        `others` holds the mean attention of all steps to the words in their sentences, and the attention of each step.
    """
    if explanation.layout.kind != "sentences":
        return explanation
    real, trace = real_places(explanation.sources, explanation.layout), explanation.trace
    steps = tuple(
        step
        if step.weights is None
        else step._replace(weights=tuple(step.weights[place] for place in real))
        for step in explanation.steps
    )
    others: tuple[AttentionTrace, ...] = ()
    if trace is not None:
        columns = zip(*trace.weights, strict=True)
        mean = tuple(math.fsum(column) / len(trace.targets) for column in columns)
        whole = replace(
            trace, targets=(explanation.output,), weights=(mean,), best=None, copied=None
        )
        others = (whole, in_a_row(trace))
    return replace(
        explanation,
        sources=tuple(explanation.sources[place] for place in real),
        steps=steps,
        best=others[-1].best if others else None,
        layout=Layout(),
        others=others,
    )

"""Answers of a search in the graph: candidates, token probabilities and attention.

Axes: K candidates, T output tokens, S positions, M positions without padding.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._answers import Answer, Attention
from ._sizes import length_limit
from ._task import Search, ranked
from .text._vocabulary import END


class Writing(NamedTuple):
    """How the ids of an output become its text, for one input."""

    limit: int  # the longest output, with the end token
    places: tuple[str, ...]  # the label of each position
    decode: Callable[[Sequence[int]], list[str]]
    join: Callable[[Sequence[str]], str]


def search_inputs(limits: Sequence[int], search: Search) -> dict[str, np.ndarray]:
    """Return the inputs of a graph that control its search."""
    return {
        "limits": np.array(limits, np.int64),
        "beam_size": np.array([search.beam_size], np.int64),
        "length_penalty": np.array([search.length_penalty], np.float32),
    }


def limit_of(num_tokens: int, lengths: Mapping[str, float], search: Search) -> int:
    """Return the longest output of a source, with the end token."""
    if search.max_length is not None:
        return search.max_length + 1
    return length_limit(num_tokens, lengths["ratio"], lengths["slack"])


def written(
    found: Mapping[str, Any],
    probabilities: np.ndarray,
    writing: Writing,
    nbest: int,
    *,
    attention: bool,
) -> Answer:
    """Return the answer to one input.

    Args:
        found: Outputs of the graph: `outputs` (K, T), `scores` (K), `log_probs` (K, T), `weights` (T, S).
        probabilities: Calibrated probabilities `(K)`.
        writing: How the ids become a text.
        nbest: Number of candidates.
        attention: Whether to return the attention.

    Returns:
        The answer.
    """
    ids = found["outputs"][:nbest, : writing.limit - 1].tolist()
    tokens = [writing.decode(_until_end(row)) for row in ids]
    outputs = [writing.join(each) for each in tokens]
    scores = found["scores"][:nbest].tolist()
    candidates = ranked(outputs, scores, probabilities[:nbest].tolist(), nbest)
    best, read = tokens[0], None
    if attention and "weights" in found:
        rows = found["weights"][: len(best), : len(writing.places)]
        read = Attention(writing.places, tuple(best), tuple(map(tuple, rows.tolist())))
    of_tokens = tuple(np.exp(found["log_probs"][0, : len(best)]).tolist())
    return Answer(*candidates[0], candidates, of_tokens, read)


def _until_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(END)] if END in ids else ids

"""Explanations of one answer. Every task implements its explanation; see `AbstractTask.explain`."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...data import Example
from ...errors import ValueRangeError
from ...tasks import AbstractTask
from ...tasks.explaining._explanation import Explanation, Way


def explain(
    task: AbstractTask[Any],
    example: Example,
    *,
    beam_size: int = 5,
    alternatives: int = 5,
    prefix: Sequence[str] = (),
    forced: Mapping[int, Sequence[float | int]] | None = None,
) -> Explanation:
    """Explain the answer of a task to one example, step by step, with alternatives.

    Args:
        task: A task with its trained model.
        example: The input; a target is ignored.
        beam_size: The beam size, and the number of answers to return.
        alternatives: The number of tokens to list at each step; classification lists all labels.
        prefix: Tokens that the output must begin with, for tasks that write an output.
        forced: For some steps, counted from 0, attention weights over all positions that replace the model's
            weights; the search continues from the resulting context. Weights that form a distribution are
            normalized. Weights of sigmoid and segment attention are used unchanged, each from 0 to 1. Only for
            tasks that write an output.

    Returns:
        The answer, its steps, and the alternatives of each step.

    Raises:
        ValueRangeError: `beam_size` or `alternatives` is less than 1, or the task does not write an output and
            `prefix` or `forced` is given.
    """
    if beam_size < 1 or alternatives < 1:
        raise ValueRangeError(
            f"explain: beam_size and alternatives must be at least 1, got {beam_size} and "
            f"{alternatives}. Use larger numbers."
        )
    if (prefix or forced) and not task.is_forcible:
        raise ValueRangeError(
            f"explain: prefix and forced need a task that generates tokens one by one, got "
            f"{task.spec.kind}. Remove prefix and forced."
        )
    return task.explain(example, Way(beam_size, alternatives, prefix, forced or {}))

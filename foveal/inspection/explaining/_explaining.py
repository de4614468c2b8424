"""How a model came to one answer. Every task answers for itself; see `AbstractTask.explain`."""

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
    """The answer of a task to one example, with what else might have been, step by step.

    Args:
        task: with its trained model.
        example: its target, if it has one, is not looked at.
        beam_size: candidates kept in search, and answers given.
        alternatives: how many symbols to list at each step; classification lists all labels.
        prefix: symbols that the output must begin with, where one is written.
        forced: for some steps, from 0 on, weights over all positions to read with instead of the
            model's own, and the search goes on from what it reads then. Where weights are a
            distribution they are normalized; of sigmoid and segment attention they are taken as they
            are, each from 0 to 1. Only where an output is written.
    """
    if beam_size < 1 or alternatives < 1:
        raise ValueRangeError(
            f"explain: beam_size and alternatives must be at least 1, got {beam_size} and {alternatives}."
        )
    if (prefix or forced) and not task.is_forcible:
        raise ValueRangeError(
            f"explain: a prefix and forced attention are for outputs that are written symbol by "
            f"symbol, got {task.spec.kind}. Leave prefix and forced out."
        )
    return task.explain(example, Way(beam_size, alternatives, prefix, forced or {}))

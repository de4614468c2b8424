"""Erasure: the change of an answer's log-probability when one input position is hidden.

    change[s, t] = log p( y_t | y_<t, x with position s unknown ) - log p( y_t | y_<t, x )

One batch erases all positions of an input, one in each row. The answer y is predicted from the whole input.
An unknown token is still a token: the input keeps its length.

Axes: S input positions, T answer tokens.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from ...data import Example
from ...errors import ValueRangeError
from ...tasks import AbstractTask


def change_without(
    task: AbstractTask[Any], example: Example, tokens: Sequence[str]
) -> Float[np.ndarray, "S T"] | None:
    """Return the change of every token's log-probability for every erased position.

    Args:
        task: The task that answers.
        example: The input.
        tokens: The tokens of the answer, with "" for the end token if it counts too; for classification, one
            label.

    Returns:
        The changes, or None for a task that does not support erasure.
    """
    with task.answering():
        log_probs = task.without_each(example, tokens)
        if log_probs is None:
            return None
        return (log_probs[1:] - log_probs[:1]).double().cpu().numpy()


def erased(
    task: AbstractTask[Any], example: Example, tokens: Sequence[str]
) -> Float[np.ndarray, "S T"]:
    """Return the result of `change_without`; raises for a task that does not support erasure."""
    change = change_without(task, example, tokens)
    if change is None:
        raise ValueRangeError(
            f"erased: expected a task whose input positions can be erased, such as transduction or "
            f"classification, got {task.spec.kind}. Skip the erasure for this task."
        )
    return change

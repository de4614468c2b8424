"""Erasing: how much less probable an answer is when one position of the input cannot be read.

    change[s, t] = log p( y_t | y_<t, x with position s unknown ) - log p( y_t | y_<t, x )

All positions of an input are erased at once, one in each row of a batch. The answer is that of the
whole input. A symbol that is unknown is still a symbol: the input keeps its length.

Axes: S positions of the input, T symbols of the answer.
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
    """The change of every symbol's log-probability for every position; None for a task that cannot be
    asked this.

    Args:
        task: what answers.
        example: the input.
        tokens: the symbols of the answer, the end symbol as "" if it counts too; of classification
            one label.
    """
    with task.answering():
        log_probs = task.without_each(example, tokens)
        if log_probs is None:
            return None
        return (log_probs[1:] - log_probs[:1]).double().cpu().numpy()


def erased(
    task: AbstractTask[Any], example: Example, tokens: Sequence[str]
) -> Float[np.ndarray, "S T"]:
    """The change of `change_without`; a task that cannot be asked this is refused."""
    change = change_without(task, example, tokens)
    if change is None:
        raise ValueRangeError(
            f"erased: expected a task that can be asked without a position of its input, such as "
            f"transduction or classification, got {task.spec.kind}. Leave the erasing out."
        )
    return change

"""User constraints on a search: the prefix of an output, and the attention of some steps."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import ValueRangeError
from ..base._writing import AbstractWriting


def prefix_numbers(task: AbstractWriting[Any, Any], prefix: Sequence[str]) -> list[int]:
    """Return the token ids of a forced prefix."""
    target = task.vocabularies.target
    assert target is not None
    for symbol in prefix:
        if symbol not in target:
            near = difflib.get_close_matches(symbol, target.tokens, n=1)
            advice = f"Did you mean {near[0]!r}?" if near else "Use tokens, not whole words."
            raise ValueRangeError(
                f"explain: a prefix must consist of output tokens, got {symbol!r}, which no output of "
                f"the training data has. {advice}"
            )
    return target.encode(prefix)


def forced_rows(
    task: AbstractWriting[Any, Any], forced: Mapping[int, Sequence[float | int]], num_places: int
) -> dict[int, Float[Tensor, " S"]]:
    """Return the attention weights of the forced steps."""
    attention = task.spec.model.decoder.attention
    if forced and attention is None:
        raise ValueRangeError(
            "explain: forced needs a decoder with attention, got one without. Remove forced, or "
            "train with --attention softmax."
        )
    rows = dict[int, Tensor]()
    for step, given in forced.items():
        row = np.asarray(given, np.float64)
        if step < 0 or row.shape != (num_places,):
            raise ValueRangeError(
                f"explain: forced attention must be a step number from 0 and a weight for each of the "
                f"{num_places} positions, got step {step} and weights of shape {row.shape}. Correct "
                f"the step or the weights."
            )
        if attention is not None and not task.spec.model.decoder.is_exclusive:
            _check_range(step, row, attention.most_weight)
        else:
            _check_range(step, row, np.inf)
            row = _normalized(step, row)
        rows[step] = torch.tensor(row, dtype=torch.float32, device=task.device)
    return rows


def _check_range(step: int, row: Float[np.ndarray, " S"], most: float) -> None:
    if not (np.isfinite(row).all() and row.min() >= 0 and row.max() <= most + 1e-6):
        bound = "0" if most == np.inf else f"0 and at most {most:g}"
        raise ValueRangeError(
            f"explain: forced weights must be finite and at least {bound}, got {row.min():g} to "
            f"{row.max():g} at step {step}. Use 0 for a position that must not be read."
        )


def _normalized(step: int, row: Float[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
    if row.sum() == 0:
        raise ValueRangeError(
            f"explain: at least one forced weight must be above 0, got none at step {step}: softmax "
            f"weights sum to 1. Use 1 for a position to read."
        )
    return row / row.sum()

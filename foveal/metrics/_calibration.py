"""Calibrated confidence: of the outputs with confidence 0.8, four in five are correct.

A model gives the n candidates of a list log-probabilities s_1 .. s_n. The remaining probability, of all other outputs
together, is r = log( 1 - sum exp s_i ). Two parameters fitted on validation data turn these into calibrated
probabilities:

    p_i = exp( s_i / T ) / ( sum over j of exp( s_j / T ) + exp( r / T + b ) )

T is a temperature (Guo et al. 2017), and b moves probability from the candidates to "none of these"
(for a list of one candidate, this is Platt scaling of its log-odds, Platt 1999). T = 1 and b = 0 give the
probabilities of the model. A model trained with label smoothing assigns too little probability to whole sequences.
A temperature cannot correct this, but b can. The remaining probability depends on the length of the list, so each
length has a pair of parameters. If the candidates are complete, as in classification, there is no "none of these", and
only T is fitted.

Axes: N examples, n candidates.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import DataError
from ..runtime._calibration import (
    Scaling as Scaling,
    calibrated,
    log_softmax,
    softmax,
    with_rest,
)

# Standard deviations of the prior of 1/T around 1 and of b around 0. The prior matters if there is little data:
# without it, a model without errors on the validation set would always get confidence 1.
_PRIOR_SHARPNESS, _PRIOR_OTHERS = 1.0, 3.0
_LEAST_SHARPNESS = 0.05
_NEWTON_STEPS = 50
NONE_OF_THESE = -1
# Accepted values when a calibration is loaded. Fitting keeps 1/T above 0.05 and, by its prior, b near 0; the number
# of scalings is at most the number of candidates of a search.
_TEMPERATURES, _MOST_OTHERS, _MOST_SCALINGS = (1e-3, 1e3), 1e3, 10_000


@dataclass(frozen=True)
class Calibration:
    """Maps log-probabilities to calibrated probabilities. `scalings[n - 1]` is for lists of n candidates. In a longer
    list, the candidates after the first n share the probability of "none of these".

    Examples:
        >>> Calibration().probabilities(np.log([[0.5, 0.25]])).round(3).tolist()
        [[0.5, 0.25]]
    """

    scalings: tuple[Scaling, ...] = (Scaling(),)

    def probabilities(self, log_probs: Float[np.ndarray, "N n"]) -> Float[np.ndarray, "N n"]:
        """Compute the probability that each candidate is correct.

        Args:
            log_probs: Log-probabilities of the candidates of each example, best first; -inf marks a missing candidate.

        Returns:
            Calibrated probabilities of the candidates, between 0 and 1.
        """
        return calibrated(self.scalings, log_probs)

    def to_data(self) -> list[dict[str, float | None]]:
        """Convert to data for JSON.

        Returns:
            The parameters as JSON values.
        """
        return [{"temperature": s.temperature, "others": s.others} for s in self.scalings]

    @classmethod
    def from_data(cls, data: Any) -> "Calibration":
        """Read data that `to_data` wrote.

        Args:
            data: Parameters as JSON values.

        Returns:
            The calibration.

        Raises:
            DataError: The data has another structure, or a number is not finite or out of range.
        """
        if not isinstance(data, list) or not 0 < len(data) <= _MOST_SCALINGS:
            raise DataError(
                f"the calibration must be a list of 1 to {_MOST_SCALINGS:,} scalings, got "
                f"{f'{len(data):,}' if isinstance(data, list) else type(data).__name__}. "
                f"Calibrate the task again."
            )
        scalings = tuple(map(_scaling, data))
        if len(scalings) > 1 and any(scaling.others is None for scaling in scalings):
            raise DataError(
                f"others is none in one of {len(scalings)} scalings, expected a number in each: only the "
                f"scaling of candidates that are all there is has none. Calibrate the task again."
            )
        return cls(scalings)


def fit_calibration(
    log_probs: Float[np.ndarray, "N n"], right: Int[np.ndarray, " N"], *, complete: bool = False
) -> Calibration:
    """Fit T and b on validation data by maximum a posteriori.

    Args:
        log_probs: Log-probabilities of the candidates of each example, best first; -inf if there is none.
        right: Index of the correct candidate; -1 if none is correct.
        complete: True if no other output is possible.

    Returns:
        The calibration, with one pair of parameters for each length of the list of candidates.
    """
    if complete:
        return Calibration((_fit(log_probs, right, complete=True),))
    return Calibration(
        tuple(
            _fit(log_probs[:, :size], np.where(right < size, right, NONE_OF_THESE), complete=False)
            for size in range(1, log_probs.shape[1] + 1)
        )
    )


def _fit(
    log_probs: Float[np.ndarray, "N n"], right: Int[np.ndarray, " N"], *, complete: bool
) -> Scaling:
    """Minimize the loss, which is convex in 1/T and b, with Newton's method."""
    features = with_rest(log_probs, complete=complete)
    is_rest = np.zeros(features.shape[1])
    is_rest[-1] = 0.0 if complete else 1.0
    chosen = np.where(right == NONE_OF_THESE, features.shape[1] - 1, right)
    real = np.isfinite(features)
    finite = np.where(real, features, 0.0)
    precision = np.array([_PRIOR_SHARPNESS**-2, _PRIOR_OTHERS**-2])
    point = np.array([1.0, 0.0])

    def loss(at: Float[np.ndarray, " 2"]) -> float:
        logits = np.where(real, at[0] * finite + at[1] * is_rest, -np.inf)
        picked = log_softmax(logits)[np.arange(len(chosen)), chosen]
        return float(-picked.sum() + precision @ (at - [1.0, 0.0]) ** 2 / 2)

    for _ in range(_NEWTON_STEPS):
        step = _newton_step(finite, is_rest, real, chosen, point, precision)
        size = 1.0
        while size > 1e-6:
            after = np.maximum(point + size * step, [_LEAST_SHARPNESS, -np.inf])
            if loss(after) <= loss(point):
                break
            size /= 2
        else:
            break
        moved, point = np.abs(after - point).max(), after
        if moved < 1e-10:
            break
    return Scaling(temperature=float(1 / point[0]), others=None if complete else float(point[1]))


def _newton_step(
    features: Float[np.ndarray, "N m"],
    is_rest: Float[np.ndarray, " m"],
    real: Bool[np.ndarray, "N m"],
    chosen: Int[np.ndarray, " N"],
    point: Float[np.ndarray, " 2"],
    precision: Float[np.ndarray, " 2"],
) -> Float[np.ndarray, " 2"]:
    """Return minus gradient over Hessian, from the mean and covariance of the two statistics (s, "none of these")
    under the probabilities at this point.
    """
    logits = np.where(real, point[0] * features + point[1] * is_rest, -np.inf)
    weights = softmax(logits)
    statistics = np.stack([features, np.broadcast_to(is_rest, features.shape)], -1)
    mean = np.einsum("nm,nmk->nk", weights, statistics)
    seen = statistics[np.arange(len(chosen)), chosen]
    gradient = (mean - seen).sum(0) + precision * (point - [1.0, 0.0])
    centered = statistics - mean[:, None]
    hessian = np.einsum("nm,nmk,nml->kl", weights, centered, centered) + np.diag(precision)
    return -np.linalg.solve(hessian, gradient)


def _scaling(data: Any) -> Scaling:
    if not isinstance(data, dict) or set(data) != {"temperature", "others"}:
        raise DataError(
            f"a scaling of the calibration has temperature and others, got {str(data)[:80]}. "
            f"Calibrate the task again."
        )
    temperature, others = data["temperature"], data["others"]
    least, most = _TEMPERATURES
    if not (_is_number(temperature) and least <= temperature <= most):
        raise DataError(
            f"temperature: expected a number from {least:g} to {most:g}, got {str(temperature)[:80]}. "
            f"Calibrate the task again."
        )
    if others is not None and not (_is_number(others) and abs(others) <= _MOST_OTHERS):
        raise DataError(
            f"others: expected none or a number from {-_MOST_OTHERS:g} to {_MOST_OTHERS:g}, got "
            f"{str(others)[:80]}. Calibrate the task again."
        )
    return Scaling(temperature=float(temperature), others=None if others is None else float(others))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""The reliability of confidence: expected calibration error, and risk against coverage.

    ECE = sum over bins of |bin| / N * | mean confidence in the bin - fraction correct in the bin |

Bins have equal sizes. Their number is the largest for which the fraction correct never falls as confidence rises (the
monotone sweep of Roelofs et al. 2022): with a fixed number of bins, the error of a perfect model on 100 examples would
look like 0.1. Two more figures separate the remaining noise: `chance` is the error of a perfectly calibrated model with
these confidences on this number of examples, and `debiased` is an error without the noise (Kumar et al. 2019),

    sqrt( sum over bins of |bin| / N * ( (confidence - right)^2 - right (1 - right) / (|bin| - 1) ) )

or 0 if the sum is negative. The sum is an unbiased estimate for test sets of any size.

Axes: N examples, M bins or points.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ..errors import ShapeError

_NUM_CHANCES = 200


class Bin(NamedTuple):
    """Examples with similar confidence."""

    num_examples: int
    confidence: float  # mean
    right: float  # fraction correct


class Reliability(NamedTuple):
    """The distance between confidence and the fraction correct.

    `chance` is the mean error of a perfectly calibrated model on this number of examples: an ECE below it gives no
    reason to doubt the confidence. `debiased` is a root mean square, and therefore at least a mean; it is 0 if nothing
    remains beyond the noise.
    """

    ece: float
    chance: float
    debiased: float
    bins: tuple[Bin, ...]


class RiskCoverage(NamedTuple):
    """Risk-coverage curve: `risk` is the error rate of the fraction `coverage` of most confident outputs."""

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    area: float  # mean risk over all coverages; lower is better

    def coverage_at(self, risk: float) -> float:
        """Return the largest fraction of outputs that can be kept with at most this risk."""
        kept = (c for c, r in zip(self.coverage, self.risk, strict=True) if r <= risk)
        return max(kept, default=0.0)


def reliability(
    confidence: Float[np.ndarray, " N"], right: Bool[np.ndarray, " N"], *, seed: int = 0
) -> Reliability:
    """Compute the expected calibration error and its value by chance.

    Args:
        confidence: Probability that each output is correct, according to the model.
        right: True if the output is correct.
        seed: Seed of the simulation of a perfectly calibrated model.

    Returns:
        The expected calibration error, its value by chance, its debiased value and the bins.

    Raises:
        ShapeError: The numbers of elements differ, or are 0.
    """
    _check("reliability", confidence, right)
    order = np.argsort(confidence, kind="stable")
    confidence, right = confidence[order], right[order]
    bins = _sweep(confidence, right)
    generator = np.random.default_rng(seed)
    simulated = generator.random((_NUM_CHANCES, len(confidence))) < confidence
    chance = np.mean([calibration_error(confidence, row) for row in simulated])
    rows = (Bin(int(size), mean, share) for size, mean, share in bins.T.tolist())
    return Reliability(
        _error(bins), float(chance), max(0.0, mean_square(confidence, right)) ** 0.5, tuple(rows)
    )


def calibration_error(confidence: Float[np.ndarray, " N"], right: Bool[np.ndarray, " N"]) -> float:
    """Compute the expected calibration error alone, for examples sorted by ascending confidence."""
    return _error(_sweep(confidence, right))


def risk_coverage(
    confidence: Float[np.ndarray, " N"], right: Bool[np.ndarray, " N"]
) -> RiskCoverage:
    """Compute the curve over all thresholds of confidence (El-Yaniv and Wiener 2010). Outputs with equal confidence
    are kept or rejected together.

    Args:
        confidence: Confidence of each output.
        right: True if the output is correct.

    Returns:
        Coverage and risk at each threshold, most confident outputs first, and the area under the curve.

    Raises:
        ShapeError: The numbers of elements differ, or are 0.
    """
    _check("risk_coverage", confidence, right)
    order = np.argsort(-confidence, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(confidence[order]) != 0, True)) + 1
    risk = np.cumsum(~right[order])[ends - 1] / ends
    coverage = ends / len(confidence)
    area = float(np.diff(coverage, prepend=0.0) @ risk)
    return RiskCoverage(tuple(coverage.tolist()), tuple(risk.tolist()), area)


def mean_square(confidence: Float[np.ndarray, " N"], right: Bool[np.ndarray, " N"]) -> float:
    """Compute the sum under the root of `debiased` for examples sorted by ascending confidence, in bins of twenty, but
    at least five and at most fifteen bins.
    """
    num_bins = min(15, max(5, len(right) // 20), max(1, len(right) // 2))
    sizes, means, shares = _bins(_running_sums(confidence, right), num_bins)
    noise = shares * (1 - shares) / np.maximum(sizes - 1, 1)
    return float(sizes @ ((means - shares) ** 2 - noise) / sizes.sum())


def _running_sums(
    confidence: Float[np.ndarray, " N"], right: Bool[np.ndarray, " N"]
) -> Float[np.ndarray, "3 n"]:
    """Return running sums, starting at 0, of the examples, their confidences and the correct ones among them."""
    columns = np.stack([np.ones(len(right)), confidence, right])
    return np.cumsum(np.pad(columns, ((0, 0), (1, 0))), 1)


def _sweep(
    confidence: Float[np.ndarray, " N"], right: Bool[np.ndarray, " N"]
) -> Float[np.ndarray, "3 M"]:
    """Return the largest number of bins for which the fraction correct never falls, here and with fewer bins."""
    sums = _running_sums(confidence, right)
    best = _bins(sums, 1)
    for num_bins in range(2, len(right) + 1):
        bins = _bins(sums, num_bins)
        if (np.diff(bins[2]) < 0).any():
            break
        best = bins
    return best


def _bins(sums: Float[np.ndarray, "3 n"], num_bins: int) -> Float[np.ndarray, "3 M"]:
    """Divide examples by ascending confidence into bins of equal size. Return their sizes, mean confidences and
    fractions correct, computed from running sums of the three.
    """
    bounds = np.arange(num_bins + 1) * (sums.shape[1] - 1) // num_bins
    sizes, confidence, right = np.diff(sums[:, bounds])
    return np.stack([sizes, confidence / sizes, right / sizes])


def _error(bins: Float[np.ndarray, "3 M"]) -> float:
    sizes, confidence, right = bins
    return float(sizes @ np.abs(confidence - right) / sizes.sum())


def _check(owner: str, confidence: Float[np.ndarray, " N"], right: Bool[np.ndarray, " M"]) -> None:
    if len(confidence) != len(right) or not len(right):
        raise ShapeError(
            f"{owner}: got {len(confidence)} confidences and {len(right)} correctness values, "
            f"expected equal numbers of at least 1. Score outputs that have a reference."
        )

"""Calibrated confidence from the log-probabilities of candidates; `foveal.metrics` fits the parameters.

    p_i = exp( s_i / T ) / ( sum over j of exp( s_j / T ) + exp( r / T + b ) ),   r = log( 1 - sum exp s_i )

Axes: N examples, n candidates.
"""

from dataclasses import dataclass

import numpy as np

# Sums of probabilities in float32 are accurate to about this value, so the remaining probability is at least this.
_LEAST_REST = 1e-6


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The parameters T and b for lists of one length."""

    temperature: float = 1.0
    others: float | None = 0.0  # b; None if the candidates are complete

    def probabilities(self, log_probs: np.ndarray) -> np.ndarray:
        """Compute the probability that each candidate is correct and, in the last column, that none is.

        Args:
            log_probs: Log-probabilities `(N, n)`.

        Returns:
            Probabilities `(N, n + 1)`.
        """
        logits = with_rest(log_probs, complete=self.others is None) / self.temperature
        logits[:, -1] += self.others or 0.0
        return softmax(logits)


def calibrated(scalings: tuple[Scaling, ...], log_probs: np.ndarray) -> np.ndarray:
    """Compute the probability that each candidate is correct.

    Args:
        scalings: `scalings[n - 1]` is for lists of n candidates. In a longer list, the candidates after the first n share
            the probability of "none of these".
        log_probs: Log-probabilities `(N, n)` of the candidates, best first; -inf marks a missing candidate.

    Returns:
        Calibrated probabilities `(N, n)`.
    """
    if scalings[0].others is None:
        return scalings[0].probabilities(log_probs)[:, :-1]
    size = min(log_probs.shape[1], len(scalings))
    first, after = log_probs[:, :size], log_probs[:, size:]
    scaled = scalings[size - 1].probabilities(first)
    if not after.size:
        return scaled[:, :-1]
    share = np.minimum(np.exp(after - with_rest(first, complete=False)[:, -1:]), 1.0)
    return np.concatenate([scaled[:, :-1], scaled[:, -1:] * share], 1)


def with_rest(log_probs: np.ndarray, *, complete: bool) -> np.ndarray:
    """Append the log-probability of all other outputs; -inf if there are no others."""
    log_probs = np.asarray(log_probs, np.float64)
    left = np.maximum(1 - np.exp(log_probs).sum(1, keepdims=True), _LEAST_REST)
    rest = np.full_like(left, -np.inf) if complete else np.log(left)
    return np.concatenate([log_probs, rest], 1)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Normalize the rows in log space."""
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Normalize the rows."""
    return np.exp(log_softmax(logits))

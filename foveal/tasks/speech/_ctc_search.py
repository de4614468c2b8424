r"""CTC decoding: the most probable texts, each summed over all paths that spell it.

    p(y) = sum over paths that spell y of prod over s of p(path_s)

A beam keeps the best prefixes with two sums each: over the paths that end in a blank, and over those that end in the last
label, because only after a blank does the same label start a new token.

Axes: S positions, W tokens.
Reference: Graves and Jaitly 2014, section 2 (prefix search).
"""

import math
from collections import defaultdict
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from ...errors import ValueRangeError

_NEVER = -math.inf


class CTCHypothesis(NamedTuple):
    """A text as labels, and its log-probability."""

    labels: tuple[int, ...]
    log_prob: float


class _Sums(NamedTuple):
    """Log-probabilities of the paths of a prefix, by their last position."""

    blank: float = _NEVER
    label: float = _NEVER

    @property
    def total(self) -> float:
        return _plus(self.blank, self.label)


def ctc_beam_search(
    log_probs: Float[Tensor, "S W"], *, beam_size: int = 8, blank: int = 0
) -> list[CTCHypothesis]:
    """Search for the most probable texts of one sequence.

    The result is exact if the beam has room for all prefixes; otherwise, log-probabilities are lower bounds.

    Args:
        log_probs: Log-probability of each token and of the blank at each position.
        beam_size: Number of prefixes to keep.
        blank: Index of the blank.

    Returns:
        At most `beam_size` texts, the most probable first.

    Raises:
        ValueRangeError: `beam_size` is less than 1.

    Examples:
        >>> import torch
        >>> log_probs = torch.tensor([[0.4, 0.6], [0.7, 0.3]]).log()
        >>> best, other = ctc_beam_search(log_probs)
        >>> best.labels, round(math.exp(best.log_prob), 2)      # 0.6 * 0.7 + 0.6 * 0.3 + 0.4 * 0.3
        ((1,), 0.72)
    """
    if beam_size < 1:
        raise ValueRangeError(
            f"ctc_beam_search: beam_size must be at least 1, got {beam_size}. Use a positive number of prefixes."
        )
    kept = {(): _Sums(blank=0.0)}
    # Tokens that are not among the most probable of a position rarely extend a prefix of the beam.
    most = min(log_probs.shape[-1], 2 * beam_size + 1)
    values, indices = log_probs.topk(most)
    rows = zip(values.tolist(), indices.tolist(), log_probs[:, blank].tolist(), strict=True)
    for scores, tokens, of_blank in rows:
        likely = [pair for pair in zip(tokens, scores, strict=True) if pair[0] != blank]
        found = _extended(kept, likely, of_blank)
        ranked = sorted(found.items(), key=lambda item: item[1].total, reverse=True)
        kept = dict(ranked[:beam_size])
    return [CTCHypothesis(prefix, sums.total) for prefix, sums in kept.items()]


def _extended(
    kept: dict[tuple[int, ...], _Sums], likely: list[tuple[int, float]], of_blank: float
) -> dict[tuple[int, ...], _Sums]:
    """Extend all prefixes by one position."""
    found: defaultdict[tuple[int, ...], _Sums] = defaultdict(_Sums)
    for prefix, sums in kept.items():
        same = found[prefix]
        found[prefix] = same._replace(blank=_plus(same.blank, sums.total + of_blank))
        for token, score in likely:
            is_repeat = bool(prefix) and prefix[-1] == token
            if is_repeat:  # without a blank, the label continues
                same = found[prefix]
                found[prefix] = same._replace(label=_plus(same.label, sums.label + score))
            longer = (*prefix, token)
            from_sum = sums.blank if is_repeat else sums.total
            after = found[longer]
            found[longer] = after._replace(label=_plus(after.label, from_sum + score))
    return {prefix: sums for prefix, sums in found.items() if sums.total > _NEVER}


def _plus(first: float, second: float) -> float:
    """Return log(exp(first) + exp(second))."""
    high, low = max(first, second), min(first, second)
    return high if low == _NEVER else high + math.log1p(math.exp(low - high))

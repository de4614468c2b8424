"""Exponential moving average of the weights.

    a <- d a + (1 - d) w,    d = min( decay^8, k / (9 + k) )    at every eighth update

Here k counts the updates of the average. The decay starts small, so the average forgets the random initial weights
after a few dozen updates. The usual alternative is the mean of the last checkpoints. A moving average needs no files,
and every validation can use it: the score that stops a run is the score of the saved weights.

References: Polyak and Juditsky 1992; Tarvainen and Valpola 2017.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

# One update reads and writes all weights, which takes 2 % of a small model's step. One update with the decay to the
# eighth power differs from eight updates by less than the weights move in eight steps.
RENEW_EVERY = 8


class Average:
    """Moving average of named weights."""

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self._weights = dict(weights)
        self._decay = decay**RENEW_EVERY
        self.mean = {name: weight.detach().clone() for name, weight in weights.items()}

    def renew(self, step: int) -> None:
        """Update the average if it is due; `step` is the number of the optimizer step just made."""
        if step % RENEW_EVERY and step > RENEW_EVERY:  # at first, the average is a copy
            return
        renewals = step // RENEW_EVERY
        decay = min(self._decay, renewals / (9 + renewals))
        with torch.no_grad():
            for mean, weight in zip(self.mean.values(), self._weights.values(), strict=True):
                mean.lerp_(weight, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the average as the weights of the model within the context."""
        kept = {name: weight.detach().clone() for name, weight in self._weights.items()}
        overwrite(self._weights, self.mean)
        try:
            yield
        finally:
            overwrite(self._weights, kept)


def overwrite(weights: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Copy values into weights, in place and without a graph."""
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(values[name])

"""A running mean of the weights.

    a <- d a + (1 - d) w,    d = min( decay^8, k / (9 + k) )    at every eighth update

where k counts how often the mean was renewed: it forgets quickly at first, so that the random weights
of the start are gone after a few dozen updates. Of the two usual kinds of averaging, this one and the
mean of the last checkpoints, it is the one that every validation can use, so that the score that stops
a run is that of the weights which are kept; and it needs no files.

References: Polyak and Juditsky 1992; Tarvainen and Valpola 2017.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

# One renewal reads and writes all weights, 2 % of a small model's step; eight updates with the
# decay to the eighth power differ from one each by less than the weights move in eight updates.
RENEW_EVERY = 8


class Average:
    """The mean of some weights, by name."""

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self._weights = dict(weights)
        self._decay = decay**RENEW_EVERY
        self.mean = {name: weight.detach().clone() for name, weight in weights.items()}

    def renew(self, step: int) -> None:
        """Take the weights in, if it is time; `step` is the number of the update just made."""
        if step % RENEW_EVERY and step > RENEW_EVERY:  # of the first few it is a copy
            return
        renewals = step // RENEW_EVERY
        decay = min(self._decay, renewals / (9 + renewals))
        with torch.no_grad():
            for mean, weight in zip(self.mean.values(), self._weights.values(), strict=True):
                mean.lerp_(weight, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model with the mean as its weights, for as long as this lasts."""
        kept = {name: weight.detach().clone() for name, weight in self._weights.items()}
        overwrite(self._weights, self.mean)
        try:
            yield
        finally:
            overwrite(self._weights, kept)


def overwrite(weights: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Copy values into weights, in place, without a graph."""
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(values[name])

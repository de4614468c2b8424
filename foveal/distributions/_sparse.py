"""What a sparse distribution over structures can do.

    marginals() = the gradient of smoothed_max()

A sparse distribution gives most structures probability exactly 0. It is not proportional to
exp(score), so it has no log-partition; what takes its place is the maximum of the score smoothed
by a Tsallis entropy. Once its probabilities are known it is a distribution like any other, whose
log-potentials are logarithms of probabilities: `gibbs()` gives it so, with all the verbs of
`AbstractDistribution`, and the verbs below come from there.
"""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..errors import ValueRangeError
from ._distribution import AbstractDistribution, TopK
from ._fields import AbstractFields


class AbstractSparseDistribution(AbstractFields):
    """A distribution over structures, most of which have probability exactly 0; subclasses are
    frozen dataclasses.

    Masks and `-inf` mean what they mean for an `AbstractDistribution`. Where no structure is
    possible, `smoothed_max` is -inf and the marginals are 0. Where a score that is read is NaN or
    +inf, both are NaN.
    """

    @abstractmethod
    def smoothed_max(self) -> Float[Tensor, "*batch"]:
        """The smoothed maximum of the score; where one structure alone is possible, its score."""

    @abstractmethod
    def marginals(self) -> Tensor:
        """The probability of each part, in the shape of the scores; differentiable where the
        support does not change, which is almost everywhere.
        """

    @abstractmethod
    def gibbs(self) -> AbstractDistribution:
        """The same distribution given by log-potentials, -inf outside the support."""

    def support(self) -> Bool[Tensor, "..."]:
        """True on the parts of probability above 0."""
        return self.marginals() > 0

    def log_prob(self, value: Tensor) -> Tensor:
        """log p(value), -inf outside the support."""
        return self.gibbs().score(value)  # its log Z is 0

    def argmax(self) -> Tensor:
        """The most probable structure."""
        return self.gibbs().argmax()

    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Independent exact samples, `sample_shape` leading."""
        return self.gibbs().sample(sample_shape, generator=generator)

    def topk(self, k: int) -> TopK:
        """The k most probable structures and their log-probabilities."""
        return self.gibbs().topk(k)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """H(self) = - E[ log p(z) ], Shannon's, in nats."""
        return self.gibbs().entropy()

    def indicators(self, value: Tensor) -> Tensor:
        """The parts of a structure in the layout of `marginals()`: 1 on those it has, 0 elsewhere."""
        return self.gibbs().indicators(value)


def check_alpha(owner: str, alpha: float) -> None:
    """The order of the Tsallis entropy."""
    if not 1 < alpha < torch.inf:
        raise ValueRangeError(
            f"{owner}: alpha must be above 1 and finite, got {alpha}. Pass 1.5 or 2; at 1 the "
            f"distribution is no longer sparse: use Categorical or LinearChain."
        )


def log_or_forbid(probabilities: Tensor) -> Tensor:
    """log p, and -inf with gradient 0 where p is 0."""
    inside = probabilities != 0  # also where it is NaN
    return torch.where(inside, torch.where(inside, probabilities, 1.0).log(), -torch.inf)

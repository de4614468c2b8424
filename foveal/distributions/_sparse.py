"""The base class of sparse distributions over structures.

    marginals() = the gradient of smoothed_max()

A sparse distribution assigns probability exactly 0 to most structures. It is not proportional to
exp(score), so it has no log-partition; its counterpart is the maximum of the score, smoothed by a Tsallis
entropy. `gibbs()` converts it to an `AbstractDistribution` whose log-potentials are logarithms of
probabilities. The methods below use that conversion.
"""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..errors import ValueRangeError
from ._distribution import AbstractDistribution, TopK
from ._fields import AbstractFields


class AbstractSparseDistribution(AbstractFields):
    """A distribution over structures, most of which have probability exactly 0.

    Subclasses are frozen dataclasses. Masks and `-inf` work as for an `AbstractDistribution`. If no
    structure is possible, `smoothed_max` is -inf and the marginals are 0. If a score in use is NaN or
    +inf, both are NaN.
    """

    @abstractmethod
    def smoothed_max(self) -> Float[Tensor, "*batch"]:
        """Compute the smoothed maximum of the score; with only one possible structure, it is its score."""

    @abstractmethod
    def marginals(self) -> Tensor:
        """Compute the probability of each part, in the shape of the scores.

        The marginals are differentiable wherever the support does not change, which is almost everywhere.
        """

    @abstractmethod
    def gibbs(self) -> AbstractDistribution:
        """Convert to a distribution with log-potentials, which are -inf outside the support."""

    def support(self) -> Bool[Tensor, "..."]:
        """Return a mask that is True on parts with probability above 0."""
        return self.marginals() > 0

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute log p(value), -inf outside the support."""
        return self.gibbs().score(value)  # its log Z is 0

    def argmax(self) -> Tensor:
        """Return the most probable structure."""
        return self.gibbs().argmax()

    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draw independent exact samples, with leading axes `sample_shape`."""
        return self.gibbs().sample(sample_shape, generator=generator)

    def topk(self, k: int) -> TopK:
        """Return the k most probable structures and their log-probabilities."""
        return self.gibbs().topk(k)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """Compute the Shannon entropy H(self) = - E[ log p(z) ], in nats."""
        return self.gibbs().entropy()

    def indicators(self, value: Tensor) -> Tensor:
        """Return the parts of a structure in the layout of `marginals()`: 1 on its parts, 0 elsewhere."""
        return self.gibbs().indicators(value)


def check_alpha(owner: str, alpha: float) -> None:
    """Check the order of the Tsallis entropy."""
    if not 1 < alpha < torch.inf:
        raise ValueRangeError(
            f"{owner}: alpha must be above 1 and finite, got {alpha}. Pass 1.5 or 2; at 1 the "
            f"distribution is no longer sparse: use Categorical or LinearChain."
        )


def log_or_forbid(probabilities: Tensor) -> Tensor:
    """Compute log p; if p is 0, the result is -inf with gradient 0."""
    inside = probabilities != 0  # also True for NaN
    return torch.where(inside, torch.where(inside, probabilities, 1.0).log(), -torch.inf)

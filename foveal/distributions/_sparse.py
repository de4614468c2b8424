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
        """Compute the smoothed maximum of the score; with only one possible structure, it is its score.

        Returns:
            Smoothed maximum of each batch item.
        """

    @abstractmethod
    def marginals(self) -> Tensor:
        """Compute the probability of each part, in the shape of the scores.

        The marginals are differentiable except where the support changes, that is, almost everywhere.

        Returns:
            Probabilities, many of them 0.
        """

    @abstractmethod
    def gibbs(self) -> AbstractDistribution:
        """Convert to a distribution with log-potentials, which are -inf outside the support.

        Returns:
            A distribution with the same probabilities.
        """

    def support(self) -> Bool[Tensor, "..."]:
        """Return a mask that is True on parts with probability above 0.

        Returns:
            Mask in the shape of the marginals.
        """
        return self.marginals() > 0

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute log p(value), -inf outside the support.

        Args:
            value: A structure for each batch item; leading axes before the batch shape are kept.

        Returns:
            Log-probability of each structure.
        """
        return self.gibbs().score(value)  # its log Z is 0

    def argmax(self) -> Tensor:
        """Return the most probable structure.

        Returns:
            One structure for each batch item.

        Raises:
            ImpossibleError: An item of the batch has no structure.
        """
        return self.gibbs().argmax()

    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draw independent exact samples.

        Args:
            sample_shape: Leading axes of the result; by default, one sample for each batch item.
            generator: Source of random numbers; by default, the generator of the device.

        Returns:
            Structures, with the axes `sample_shape` before the batch axes.

        Raises:
            ImpossibleError: An item of the batch has no structure.
        """
        return self.gibbs().sample(sample_shape, generator=generator)

    def topk(self, k: int) -> TopK:
        """Return the k most probable structures and their log-probabilities.

        Args:
            k: Number of structures for each batch item, at least 1.

        Returns:
            Structures and log-probabilities, best first, along a new leading axis.
        """
        return self.gibbs().topk(k)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """Compute the Shannon entropy H(self) = - E[ log p(z) ], in nats.

        Returns:
            Entropy of each batch item.
        """
        return self.gibbs().entropy()

    def indicators(self, value: Tensor) -> Tensor:
        """Return the parts of a structure in the layout of `marginals()`: 1 on its parts, 0 elsewhere.

        Args:
            value: A structure for each batch item; leading axes before the batch shape are kept.

        Returns:
            Indicators of each structure.
        """
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

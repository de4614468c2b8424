"""Straight-through estimator: a structure in the forward pass, the marginals in the backward pass.

    forward    indicators(z)
    backward   gradient of marginals()

For a function f of the result, the estimator multiplies the gradient of f at the structure with the
Jacobian of the marginals. The result is exact if f is linear in the parts, and biased otherwise, because
f may be meaningless between structures. In exchange, the variance is low.

References: Bengio et al. 2013.
"""

from torch import Tensor

from ..distributions import AbstractDistribution
from ..distributions._sparse import AbstractSparseDistribution


def straight_through(
    distribution: AbstractDistribution | AbstractSparseDistribution, value: Tensor
) -> Tensor:
    """Return the indicators of a structure, with the gradient of the marginals.

    Args:
        distribution: Any distribution.
        value: `distribution.argmax()`, or samples `distribution.sample((S,))`; leading axes before the
            batch shape are kept.

    Returns:
        Indicators of each structure in the layout of `marginals()`.

    Examples:
        >>> import torch
        >>> from foveal.distributions import Categorical
        >>> scores = torch.tensor([0.0, 1.0], requires_grad=True)
        >>> choice = Categorical(scores)
        >>> hard = straight_through(choice, choice.argmax())
        >>> hard.detach()
        tensor([0., 1.])
        >>> torch.autograd.grad(hard[1], scores)[0]      # p_1 (1 - p_1)
        tensor([-0.1966,  0.1966])
    """
    marginals = distribution.marginals()
    return distribution.indicators(value) + (marginals - marginals.detach())

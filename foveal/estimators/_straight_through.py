"""A structure forward, the marginals backward.

    forward    indicators(z)
    backward   that of marginals()

For a function f of the result, this sends the gradient of f at the structure through the Jacobian
of the marginals. It is exact where f is linear in the parts, and biased elsewhere: f is asked how
it changes between structures, where it may mean nothing. What the bias buys is a low variance.

References: Bengio et al. 2013.
"""

from torch import Tensor

from ..distributions import AbstractDistribution
from ..distributions._sparse import AbstractSparseDistribution


def straight_through(
    distribution: AbstractDistribution | AbstractSparseDistribution, value: Tensor
) -> Tensor:
    """The indicators of a structure, with the gradient of the marginals.

    Args:
        distribution: any distribution.
        value: `distribution.argmax()`, or samples `distribution.sample((S,))`; the axes that it
            has before the batch shape are kept.

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

"""Perturb-and-MAP: the best structure under noise, and the derivative of its expectation.

    z(x, G)  = argmax over z of  score(z) + sum of G * indicators(z),       G Gumbel noise of mean 0, one for each part
    m(x)     = E[ indicators( z(x, G) ) ]

Sampling needs only `argmax`. For a `Categorical`, z is an exact sample and m are the marginals.
For other structures there is one noise value per part, not per structure: z is an approximate sample,
and m approximates the marginals (Papandreou & Yuille 2011; Hazan & Jaakkola 2012).

m is the gradient of F(x) = E[ max over z of (...) ], so its Jacobian is symmetric, and its product
with an incoming gradient g is its derivative in the direction g. The estimate is a central difference,

    g^T dm/dx  ~  ( |g| / 2e ) ( parts of z(x + e g/|g|, G)  -  parts of z(x - e g/|g|, G) ),

with the same noise on both sides and |g| the largest entry, so no score moves by more than e.
Its expectation is the difference quotient of m: the bias is O(e^2) and the variance O(1/e). All
potentials of a structure get a gradient, not only the potentials with noise.

References: Domke 2010 (the difference); Niepert et al. 2021 (implicit MLE).
"""

from dataclasses import replace
from typing import Any, NoReturn

import torch
from torch import Tensor

from ..distributions import AbstractDistribution
from ..errors import DerivativeError, ValueRangeError

# The mean of a standard Gumbel variable. Without subtracting it, structures with many parts would be preferred.
_EULER_GAMMA = 0.5772156649015329


def perturb_and_map(
    distribution: AbstractDistribution,
    num_samples: int,
    *,
    step: float = 0.5,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Compute the indicators of perturbed best structures.

    The backward pass runs `argmax` twice for each sample. The function estimates m, so the gradient is
    biased for a function of one sample that is not linear in its parts.

    Args:
        distribution: Any distribution given by log-potentials.
        num_samples: Number of samples; their mean estimates m.
        step: E above, in the units of the scores. A smaller step has less bias and more variance.
        generator: Source of the noise; by default, the generator of the device.

    Returns:
        Indicators of the samples in the layout of `marginals()`, along a new leading axis.

    Raises:
        ValueRangeError: `num_samples` is less than 1, or `step` is not above 0.
        ImpossibleError: An item of the batch has no structure.
        DerivativeError: The backward pass raises it for a second derivative.

    Examples:
        >>> from foveal.distributions import Categorical
        >>> choice = Categorical(torch.tensor([0.0, 1.0, -torch.inf]))
        >>> parts = perturb_and_map(choice, 1000, generator=torch.Generator().manual_seed(0))
        >>> parts.shape
        torch.Size([1000, 3])
        >>> (parts.mean(0) - choice.marginals()).abs().max() < 0.05
        tensor(True)
    """
    if num_samples < 1 or not step > 0:
        raise ValueRangeError(
            f"perturb_and_map: expected num_samples of at least 1 and a step above 0, got "
            f"num_samples={num_samples} and step={step}. Start with 8 and 0.5."
        )
    with torch.no_grad():
        reached = distribution.marginals() > 0
        noise = reached.new_empty(num_samples, *reached.shape, dtype=torch.float64)
        noise = -noise.exponential_(generator=generator).log() - _EULER_GAMMA
    potentials = distribution.log_potentials()
    return _PerturbAndMap.apply(distribution, noise, reached, step, *potentials.values())


class _PerturbAndMap(torch.autograd.Function):
    """The potentials are inputs because they get the gradient; the values come from the distribution."""

    @staticmethod
    def forward(
        ctx: Any,
        distribution: AbstractDistribution,
        noise: Tensor,
        reached: Tensor,
        step: float,
        *potentials: Tensor,
    ) -> Tensor:
        ctx.distribution, ctx.step = distribution, step
        ctx.save_for_backward(noise, reached, *potentials)
        return distribution.indicators(distribution.tilt(noise).argmax())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        noise, reached, *potentials = ctx.saved_tensors
        gradients = _Difference.apply(
            ctx.distribution, noise, reached, ctx.step, grads[0], *potentials
        )
        return None, None, None, None, *gradients


class _Difference(torch.autograd.Function):
    """The backward pass of `_PerturbAndMap`, which has no second derivative."""

    @staticmethod
    def forward(
        ctx: Any,
        distribution: AbstractDistribution,
        noise: Tensor,
        reached: Tensor,
        step: float,
        grad: Tensor,
        *potentials: Tensor,
    ) -> tuple[Tensor, ...]:
        # Entries that no structure uses, such as padding, must not set the scale.
        direction = torch.where(reached, grad.double(), 0.0)
        axes = tuple(range(1 + len(distribution.batch_shape), grad.ndim))
        size = direction.abs().amax(axes, keepdim=True)
        direction = direction * (step / torch.where(size > 0, size, 1.0))
        # New leaves: the same structures, but autograd can differentiate their scores separately.
        names = list(distribution.log_potentials())
        leaves = [part.detach().requires_grad_() for part in potentials]
        changes: dict[str, Any] = dict(zip(names, leaves, strict=True))
        apart = replace(distribution, **changes)
        up = distribution.tilt(noise + direction).argmax()
        down = distribution.tilt(noise - direction).argmax()
        with torch.enable_grad():
            difference = apart.score(up) - apart.score(down)
            total = (size.reshape(difference.shape) / (2 * step) * difference).sum()
        return torch.autograd.grad(total, leaves, materialize_grads=True)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> NoReturn:
        raise DerivativeError(
            "perturb_and_map: one derivative can be taken, got a request for a second. Take the "
            "gradient without create_graph=True."
        )

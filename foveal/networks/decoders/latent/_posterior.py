"""The posterior over alignments, p(a | x, y), of a decoder with latent attention.

Axes: *batch any leading shape, T steps, S positions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

from jaxtyping import Bool, Float
from torch import Tensor

from ....distributions import Categorical, LinearChain
from ._transitions import AbstractTransitions


@final
@dataclass(frozen=True, eq=False)
class Posterior:
    """The exact posterior p(a_1, .., a_T | y, x).

    It is computed on first use: a training step that does not read weights does not pay for them. Weights
    and distribution are differentiable.
    """

    walk: AbstractTransitions
    scores: Float[Tensor, "*batch T S"]
    emissions: Float[Tensor, "*batch T S"]  # log p(y_t | a_t = s)
    predicted: Float[Tensor, "*batch T S"]  # log p(a_t = s | y_<t)
    mask: Bool[Tensor, "*batch T"] | None

    @cached_property
    def distribution(self) -> Categorical | LinearChain:
        """Return the distribution over the positions of all steps; its argmax is the best alignment."""
        return self.walk.posterior(self.scores, self.emissions, self.predicted, self.mask)

    # A plain property, as in the protocol `Reading`.
    @property
    def weights(self) -> Float[Tensor, "*batch T S"]:
        """Return p(a_t = s | y, x); 0 on padding."""
        return self._marginals

    @cached_property
    def _marginals(self) -> Float[Tensor, "*batch T S"]:
        return self.distribution.marginals()

"""A labeling of a sequence, where most labelings have probability exactly 0.

    a[t, j] = unary[t, j] + max_alpha over i of ( a[t-1, i] + transitions[t-1, i, j] )
    p(y)    = p( y_T ) prod_t p( y_{t-1} | y_t ),   each factor the alpha-entmax of that step

This is Viterbi with a sparse maximum (SparseDP), from the first position to the last: each step is
sparse. It differs from SparseMAP, which regularizes the whole vector of marginals and treats both
directions alike.

Axes: *batch any leading shape, T positions, K states.
References: Mensch & Blondel 2018; Niculae et al. 2018 (SparseMAP).
"""

from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from ..inference import sparse_chain_marginals
from ..inference.chain._sparse import sparse_chain_maximum
from ..masking import linked_steps
from ..shapes import restore_batch
from ._linear_chain import LinearChain
from ._sparse import AbstractSparseDistribution, check_alpha, log_or_forbid
from ._transitions import last_real


@final
@dataclass(frozen=True, eq=False)
class SparseChain(AbstractSparseDistribution):
    """Labels y_1 .. y_T; a value is `(..., T)`, -1 on padding.

    Args:
        unary: Score of each state at each position.
        transitions: Scores of neighboring states, as for `LinearChain`.
        mask: True on real positions; by default, all are real.
        alpha: Order of the Tsallis entropy, greater than 1; a higher order is sparser.

    Examples:
        >>> unary = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
        >>> stay = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> chain = SparseChain(unary, stay)
        >>> chain.marginals()[:, 1]
        tensor([1., 1., 1.])
        >>> chain.smoothed_max()     # one labeling alone is left: its score
        tensor(4.)
    """

    unary: Float[Tensor, "*#batch T K"]
    transitions: Float[Tensor, "... K K"]
    mask: Bool[Tensor, "*#batch T"] | None = None
    alpha: float = field(default=2.0, kw_only=True)

    def __post_init__(self) -> None:
        check_alpha("SparseChain", self.alpha)
        self._chain()

    @override
    def _num_event_axes(self, name: str) -> int:
        return 3 if name == "transitions" else super()._num_event_axes(name)

    def _chain(self) -> LinearChain:
        """Build the chain with these scores, which checks and flattens them."""
        return LinearChain(self.unary, self.transitions, self.mask)

    @property
    @override
    def batch_shape(self) -> torch.Size:
        return self._chain().batch_shape

    @override
    def smoothed_max(self) -> Float[Tensor, "*batch"]:
        found = sparse_chain_maximum(*self._chain()._flat(), alpha=self.alpha)
        return restore_batch(found, self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "*batch T K"]:
        """Compute p(y_t = j), 0 on padding; differentiable."""
        return self._marginals()[0]

    def pair_marginals(self) -> Float[Tensor, "*batch N K K"]:
        """Compute p(y_t = i, y_{t+1} = j) for the N = T - 1 transitions, as `LinearChain.pair_marginals`.

        Returns:
            Probability of each pair of states, earlier by later.
        """
        return self._marginals()[1]

    def _marginals(self) -> tuple[Tensor, Tensor]:
        batch = self.batch_shape
        nodes, pairs = sparse_chain_marginals(*self._chain()._flat(), alpha=self.alpha)
        return restore_batch(nodes, batch), restore_batch(pairs, batch)

    @override
    def gibbs(self) -> LinearChain:
        """Build the Markov chain with these marginals.

        p(y) = prod_t pairs[t-1, y_{t-1}, y_t] / nodes[t, y_t]  *  nodes[T, y_T]
        """
        nodes, pairs = self._marginals()
        mask = torch.ones_like(nodes[..., 0], dtype=torch.bool)
        if self.mask is not None:
            mask = self.mask.expand_as(mask)
        # Every position with a transition into it divides by its marginals; the last one multiplies.
        divides = torch.cat([torch.zeros_like(mask[..., :1]), linked_steps(mask)], -1)
        power = (last_real(mask).to(nodes.dtype) - divides.to(nodes.dtype)).unsqueeze(-1)
        log_nodes = log_or_forbid(nodes)
        inside = nodes != 0  # also True for NaN
        unary = torch.where(inside, power * torch.where(inside, log_nodes, 0.0), -torch.inf)
        return LinearChain(unary, log_or_forbid(pairs), self.mask)

"""Hard attention: read one selection instead of the expectation over all selections.

With sampling, the gradient is an estimate: `SampledValue` reads a sample and uses the gradient of the
marginals (straight-through). The exact alternative sums out the selection as a latent variable:

    log p(y) = log sum_z p(z) p(y | z) = log Z(scores + emissions) - log Z(scores)

where the emissions are the log-likelihoods of y given each part of z. The equation holds for every
distribution whose scores are sums over parts (Xu et al. 2015, section 4.1; Wu et al. 2018, for monotone
alignments).
"""

from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from ..distributions import AbstractDistribution, Categorical, without_checks
from ..estimators import straight_through
from ._attention import Attention
from ._distribute import per_query
from ._readers import AbstractReader, Read, Selection, read_by
from ._scorers import AbstractScorer, AdditiveScorer


@final
class SampledValue(AbstractReader):
    """Reads a sample during training and the most probable selection otherwise.

    The gradient is the gradient of the marginals. A query without a possible position reads zeros. A score of NaN or
    +inf makes the context NaN: the selection is not checked, because the host would wait for the GPU in each step.
    """

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        with without_checks():
            value = distribution.sample() if self.training else distribution.argmax()
            weights = straight_through(distribution, value)
        # Without a possible position, all marginals are 0 and the value is arbitrary.
        is_possible = (distribution.marginals() != 0).any(-1, keepdim=True)
        return read_by(torch.where(is_possible, weights, 0.0), values)


def hard_attention(
    query_size: int, value_size: int, scorer: AbstractScorer | None = None
) -> Attention:
    """Read one position, sampled from the softmax of the scores (Xu et al. 2015, section 4.1).

    The gradient is the straight-through estimate.

    Args:
        query_size: Width of a query.
        value_size: Width of a value.
        scorer: Scores the positions; by default, `AdditiveScorer` with `query_size` hidden units.

    Returns:
        An attention that samples in training mode and reads the most probable position otherwise.
    """
    return Attention(
        scorer=scorer or AdditiveScorer(query_size, value_size, hidden_size=query_size),
        distribute=per_query(Categorical),
        reader=SampledValue(),
    )


def marginal_log_likelihood(
    make: Callable[[Tensor], AbstractDistribution], scores: Tensor, emissions: Tensor
) -> Float[Tensor, "*batch"]:
    """Compute log p(y), with the selection summed out exactly.

    Args:
        make: Maps scores to a distribution, for example `Categorical` or `Alignment.one_to_many`.
        scores: Log-potentials of the selection.
        emissions: Log p(y | part) in the shape of the scores.

    Returns:
        Log-likelihood of each batch item.

    Examples:
        >>> import torch
        >>> scores, emissions = torch.zeros(2), torch.tensor([0.5, 0.25]).log()
        >>> marginal_log_likelihood(Categorical, scores, emissions).exp()    # (0.5 + 0.25) / 2
        tensor(0.3750)
    """
    return make(scores + emissions).log_partition() - make(scores).log_partition()

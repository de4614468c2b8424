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

from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from ..distributions import AbstractDistribution, Categorical
from ..estimators import straight_through
from ._attention import Attention
from ._distribute import per_query
from ._readers import AbstractReader, Read, Selection, read_by
from ._scorers import AbstractScorer, AdditiveScorer


@final
class SampledValue(AbstractReader):
    """Reads a sample during training and the most probable selection otherwise.

    The gradient is the gradient of the marginals. Every query must have at least one real position.
    """

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        value = distribution.sample() if self.training else distribution.argmax()
        weights = straight_through(distribution, value)
        return read_by(weights, values)


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

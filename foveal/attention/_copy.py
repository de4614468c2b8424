"""Copying: a mixture of generating a word and copying one from the source.

    p(y) = g P_vocabulary(y) + (1 - g) sum over positions s with source[s] = y of weight[s]

Axes: *batch any leading shape, Q queries, S positions, W words of the (extended) vocabulary.
Reference: See et al. 2017, eq. 8 and 9 (pointer-generator).
"""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad

from ..batch_invariant import Linear


@final
class PointerGenerator(nn.Module):
    """Computes the log-probabilities of words, generated or copied; g depends on the query and the context.

    Source words outside the vocabulary have ids that start at the vocabulary size; `num_words` counts
    the vocabulary and these words.

    Args:
        query_size: Width of a query.
        value_size: Width of a context.
    """

    def __init__(self, query_size: int, value_size: int) -> None:
        super().__init__()
        self.gate = Linear(query_size + value_size, 1)

    def forward(
        self,
        query: Float[Tensor, "*batch Q D"],
        context: Float[Tensor, "*batch Q V"],
        log_probs: Float[Tensor, "*batch Q words"],
        weights: Float[Tensor, "*batch Q S"],
        source: Int[Tensor, "*batch S"],
        num_words: int,
    ) -> Float[Tensor, "*batch Q {num_words}"]:
        """Mix the two distributions in log space; the weights of a query sum to 1 or 0.

        Args:
            query: Queries, for example states of a decoder.
            context: Context that each query has read.
            log_probs: Log-probabilities of the words of the vocabulary.
            weights: Attention weights of the positions in the source.
            source: Word id at each position of the source, less than `num_words`.
            num_words: Size of the vocabulary, plus the source words outside it.

        Returns:
            Log-probability of every word for each query; -inf for a word that is neither generated nor copied.
        """
        gate = self.gate(torch.cat([query, context], -1))
        return mixed(log_probs, gate, weights, source, num_words)


def mixed(
    log_probs: Float[Tensor, "*batch Q words"],
    gate: Float[Tensor, "*batch Q 1"],
    weights: Float[Tensor, "*batch Q S"],
    source: Int[Tensor, "*batch S"],
    num_words: int,
) -> Float[Tensor, "*batch Q {num_words}"]:
    """Mix generating and copying in log space; sigmoid(gate) is the probability of generating."""
    missing = num_words - log_probs.shape[-1]
    generated = pad(log_probs, (0, missing), value=-torch.inf) + logsigmoid(gate)
    index = source.unsqueeze(-2).expand_as(weights)
    pointed = weights.new_zeros(*weights.shape[:-1], num_words).scatter_add(-1, index, weights)
    # log 0 and the log-sum of two -inf have no gradient, so compute both only where they are finite.
    points, possible = pointed > 0, (pointed > 0) | (generated > -torch.inf)
    copied = torch.where(points, torch.where(points, pointed, 1.0).log(), -torch.inf)
    copied = torch.where(possible, copied + logsigmoid(-gate), 0.0)
    sums = torch.logaddexp(torch.where(possible, generated, 0.0), copied)
    return torch.where(possible, sums, -torch.inf)

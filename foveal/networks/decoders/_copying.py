"""Copying: each step generates a token or copies one from the source.

    p(y) = g P(y) + (1 - g) sum over positions s with copies[s] = y of weight[s],   g = sigmoid( w . v + b )

The vector v holds state and context, so the gate reads both. `Memory.copies` holds the token of each position in the
vocabulary of the outputs.

A decoder that points generates only the end, so its outputs are tokens of the source: p(end) = g, and the attention
distributes the rest.

References: See et al. 2017, eq. 8 and 9; Vinyals et al. 2015 (pointer networks).

Axes: *batch any leading shape, Q steps or hypotheses, S positions, W tokens of the vocabulary, A width of the vector v.
"""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from ...attention import Memory
from ...attention._copy import mixed
from ...batch_invariant import Linear
from ...errors import ShapeError


@final
class CopyGate(nn.Module):
    """Mixes the distribution over the vocabulary with the attention over the tokens of the source.

    Args:
        vector_size: Width of the vector v.
    """

    def __init__(self, vector_size: int) -> None:
        super().__init__()
        self.score = Linear(vector_size, 1)

    def forward(
        self,
        vectors: Float[Tensor, "*batch Q A"],
        log_probs: Float[Tensor, "*batch Q W"],
        weights: Float[Tensor, "*batch Q S"],
        memory: Memory,
    ) -> Float[Tensor, "*batch Q W"]:
        """Compute the log-probabilities of all tokens, generated or copied.

        Args:
            vectors: Vectors before the output layer.
            log_probs: Log-probabilities of generating each token.
            weights: Attention weights; each row sums to 1.
            memory: Encoded input with `copies`.

        Returns:
            Log-probabilities of the mixture.
        """
        return mixed(
            log_probs, self.score(vectors), weights, copies_of(memory), log_probs.shape[-1]
        )

    def target_log_probs(
        self,
        vectors: Float[Tensor, "*batch T A"],
        log_probs: Float[Tensor, "*batch T"],
        weights: Float[Tensor, "*batch T S"],
        targets: Int[Tensor, "*batch T"],
        memory: Memory,
    ) -> Float[Tensor, "*batch T"]:
        """Compute the log-probabilities of one token for each vector, without the table of all tokens.

        Args:
            vectors: Vectors before the output layer.
            log_probs: Log-probabilities of generating the targets.
            weights: Attention weights; each row sums to 1.
            targets: Token ids, one for each vector.
            memory: Encoded input with `copies`.

        Returns:
            Log-probabilities of the targets, generated or copied.
        """
        gate = self.score(vectors).squeeze(-1)
        same = copies_of(memory).unsqueeze(-2) == targets.unsqueeze(-1)
        pointed = torch.where(same, weights, 0.0).sum(-1)
        points = pointed > 0  # log 0 has no gradient
        copied = torch.where(points, pointed, 1.0).log() + logsigmoid(-gate)
        generated = log_probs + logsigmoid(gate)
        return torch.where(points, torch.logaddexp(generated, copied), generated)

    def probabilities(self, vectors: Float[Tensor, "*batch Q A"]) -> Float[Tensor, "*batch Q"]:
        """Return the probability of copying at each step, 1 - g.

        Args:
            vectors: Vectors before the output layer.

        Returns:
            Probabilities, one for each vector.
        """
        return torch.sigmoid(-self.score(vectors)).squeeze(-1)


def copies_of(memory: Memory) -> Int[Tensor, "*batch S"]:
    """Return the tokens that can be copied; raise `ShapeError` if the memory has none."""
    if memory.copies is None:
        raise ShapeError(
            "Decoder: it copies tokens of the source, got a memory without them. "
            "Set memory.copies to the token ids of all positions, or build the decoder with copy=False."
        )
    return memory.copies

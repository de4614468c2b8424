"""The result of every search: N outputs for each item, with scores and attention weights.

Axes: B items, N outputs of each, T tokens of the longest, S positions in memory.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import ImpossibleError


class Hypotheses(NamedTuple):
    """N outputs for each item.

    The tokens exclude the begin symbol. They include the end symbol if it was generated; it also fills
    the positions after the end.

    Outputs of greedy and beam search have an end symbol. A sample of `max_length` tokens may be truncated
    and then has no end symbol.
    """

    tokens: Int[Tensor, "B N T"]
    lengths: Int[Tensor, "B N"]  # including the end symbol
    scores: Float[Tensor, "B N"]  # the ranking scores; -inf if there is no n-th output
    log_probs: Float[Tensor, "B N T"]  # log p(token) of the model; 0 after the end
    weights: Float[Tensor, "B N T S"] | None  # attention weights of each token; 0 after the end

    @property
    def totals(self) -> Float[Tensor, "B N"]:
        """Compute the log-probability of each whole output; -inf if there is none."""
        return total(self.log_probs).masked_fill(self.lengths == 0, -torch.inf)

    def token_lists(self, end: int) -> list[list[list[int]]]:
        """Convert tokens to lists without the end symbol.

        Args:
            end: End symbol.

        Returns:
            For each item, a list of outputs, each a list of token ids.
        """
        return [
            [
                [token for token in row[:length] if token != end]
                for row, length in zip(rows, lengths, strict=True)
            ]
            for rows, lengths in zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        ]


def total(log_probs: Float[Tensor, "*batch T"]) -> Float[Tensor, "*batch"]:
    """Add the log-probabilities sequentially, which makes the result independent of padding.

    The order of additions in `sum` depends on T, the length of the longest output in the batch.
    """
    return log_probs.cumsum(-1)[..., -1]


def ordinary(hypotheses: Hypotheses) -> Hypotheses:
    """Copy tensors for autograd: tensors from inference mode cannot be used in training."""
    tokens, lengths, scores, log_probs, weights = hypotheses
    weights = None if weights is None else weights.clone()
    return Hypotheses(tokens.clone(), lengths.clone(), scores.clone(), log_probs.clone(), weights)


def check_found(best: Float[Tensor, " B"], search: str) -> None:
    """Check that every item has an output; `best` is the score of the first, -inf (or NaN) if it died."""
    dead = ~(best > -torch.inf)
    if dead.any():
        items = dead.nonzero().flatten().tolist()
        shown = ", ".join(map(str, items[:10])) + (", ..." if len(items) > 10 else "")
        raise ImpossibleError(
            f"{search}: expected at least one possible output for every item, got none for "
            f"{len(items)} of {len(dead)}: items {shown}. Every continuation has probability 0 "
            f"(or NaN) under the model and the rules together. Use a wider beam, allow longer "
            f"outputs, relax no_repeat_ngram, prefix or constraints, or leave these items out."
        )

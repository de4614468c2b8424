"""What every search returns: N outputs for each item, with their scores and their traces.

Axes: B items, N outputs of each, T tokens of the longest, S places in memory.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import ImpossibleError


class Hypotheses(NamedTuple):
    """N outputs for each item. The begin symbol is not among the tokens; the end symbol is, where it
    was produced, and fills up what comes after.

    What a search (greedy, beam) finds has an end symbol; a sample of `max_length` tokens may have been
    cut off, and then its last token is another.
    """

    tokens: Int[Tensor, "B N T"]
    lengths: Int[Tensor, "B N"]  # the end symbol counted
    scores: Float[Tensor, "B N"]  # what they were ranked by; -inf where there is no n-th output
    log_probs: Float[Tensor, "B N T"]  # the model's, of each token; 0 after the end
    weights: Float[Tensor, "B N T S"] | None  # what was read to choose each token; 0 after the end

    @property
    def totals(self) -> Float[Tensor, "B N"]:
        """The log-probability of each output as a whole; -inf where there is none."""
        return total(self.log_probs).masked_fill(self.lengths == 0, -torch.inf)

    def token_lists(self, end: int) -> list[list[list[int]]]:
        """Tokens as lists, for each item and output, without the end symbol."""
        return [
            [
                [token for token in row[:length] if token != end]
                for row, length in zip(rows, lengths, strict=True)
            ]
            for rows, lengths in zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        ]


def total(log_probs: Float[Tensor, "*batch T"]) -> Float[Tensor, "*batch"]:
    """Their sum, one after the other, so that 0 after the end changes nothing: `sum` would add them up in
    an order that depends on T, which is that of the longest output in the batch.
    """
    return log_probs.cumsum(-1)[..., -1]


def ordinary(hypotheses: Hypotheses) -> Hypotheses:
    """Copies that autograd may save: tensors made in inference mode cannot take part in training."""
    tokens, lengths, scores, log_probs, weights = hypotheses
    weights = None if weights is None else weights.clone()
    return Hypotheses(tokens.clone(), lengths.clone(), scores.clone(), log_probs.clone(), weights)


def check_found(best: Float[Tensor, " B"], search: str) -> None:
    """Every item must have an output; `best` is the score of the first, -inf (or NaN) if it died."""
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

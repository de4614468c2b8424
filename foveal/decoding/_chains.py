"""K outputs for each item, generated in parallel and independently of each other.

    y_t = choose( log p(. | y_<t) )

Greedy search chooses the most probable token; sampling draws a token.

Axes: B items, b items still in the batch, K outputs of each, W tokens of the vocabulary.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._hypotheses import Hypotheses, check_found, total
from ._journal import Journal, staying
from ._limits import Limit
from ._rules import Rules
from ._stepper import Stepper


class AbstractChoice(ABC):
    """Chooses the next token."""

    @abstractmethod
    def choose(self, step: int, allowed: Float[Tensor, "b K W"]) -> tuple[Tensor, Tensor]:
        """Return the log-probability and the token of every output, both `(b, K)`."""

    @abstractmethod
    def keep(self, items: Int[Tensor, " n"]) -> None:
        """Keep only these items."""


def write_chains(
    search: str,
    stepper: Stepper,
    state: Any,
    tokens: Int[Tensor, "B K"],
    choice: AbstractChoice,
    *,
    end: int,
    limit: Limit,
    rules: Rules,
    with_weights: bool,
) -> Hypotheses:
    """Generate until every output has ended; finished items leave the batch."""
    journal, whole, each = Journal(len(tokens)), limit, limit.each
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    weights: Tensor | None = None
    for step in range(limit.longest):
        state, log_probs, weights = stepper.step(state, tokens)
        values, tokens = choice.choose(step, rules.allow(step, log_probs))
        if with_weights and weights is not None:
            journal.write(tokens, values, weights)
        else:
            journal.write(tokens, values)
        ended = ended | (tokens == end)
        if each is not None:
            ended = ended | (each <= step + 1).unsqueeze(1)
        done = ended if ended.shape[1] == 1 else ended.all(1, keepdim=True)
        num_done = int(done.sum())
        if num_done == len(done):
            break
        rules.advance(tokens, None)
        if (items := staying(done, num_done)) is not None:
            state, tokens, ended = stepper.keep(state, items), tokens[items], ended[items]
            each = None if each is None else each[items]
            journal.keep(items)
            choice.keep(items)
            rules.keep(items)
    return _hypotheses(search, journal, end, whole, with_weights and weights is not None)


def _hypotheses(
    search: str, journal: Journal, end: int, limit: Limit, with_weights: bool
) -> Hypotheses:
    tokens = journal.read(0, end)
    values = journal.read(1, 0.0)
    # The output ends at its first end symbol, or else at the limit.
    so_far = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    longest = limit.longest if limit.each is None else limit.each[:, None]
    lengths = torch.where(tokens == end, so_far[:, None], limit.longest).amin(1).clamp(max=longest)
    size = int(lengths.max()) if len(lengths) else 1
    after = so_far[:size, None] > lengths.unsqueeze(1)
    tokens = tokens[:, :size].masked_fill(after, end).transpose(1, 2)
    log_probs = values[:, :size].masked_fill(after, 0.0).transpose(1, 2)
    scores = total(log_probs)
    check_found(scores.amin(1), search)
    weights = None
    if with_weights:
        read = journal.read(2, 0.0)[:, :size].masked_fill(after.unsqueeze(-1), 0.0)
        weights = read.transpose(1, 2)
    return Hypotheses(tokens, lengths, scores, log_probs, weights)

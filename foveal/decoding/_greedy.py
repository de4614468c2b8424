"""Greedy search: choose the most probable token at every step.

Axes: B items, P tokens of the longest prefix, W tokens of the vocabulary.
"""

from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from ._automaton import Automaton
from ._chains import AbstractChoice, write_chains
from ._hypotheses import Hypotheses, ordinary
from ._limits import first_tokens, limit_of
from ._rules import rules_of
from ._selection import largest
from ._stepper import Stepper


def greedy(
    stepper: Stepper,
    state: Any,
    *,
    begin: int | Int[Tensor, " B"],
    end: int,
    max_length: int | Int[Tensor, " B"],
    min_length: int = 1,
    prefix: Int[Tensor, "B P"] | None = None,
    prefix_mask: Bool[Tensor, "B P"] | None = None,
    no_repeat_ngram: int = 0,
    constraints: Sequence[Automaton] = (),
    with_weights: bool = False,
) -> Hypotheses:
    """Generate one output for each item by choosing the most probable token at every step.

    At `max_length` only the end symbol is allowed. The score of an output is its log-probability.

    Args:
        stepper: The model.
        state: Initial state, with one hypothesis for each of B items.
        begin: Begin symbol; a tensor gives one for each item.
        end: End symbol.
        max_length: Maximum output length, including the end symbol; a tensor gives one for each item.
        min_length: Minimum output length, including the end symbol.
        prefix: Forced first tokens of the outputs; their log-probabilities count.
        prefix_mask: True on the tokens of each prefix, which come first in their row.
        no_repeat_ngram: Size of the n-grams that may not occur twice; 0 allows repetition.
        constraints: Automata, all of which must accept the output.
        with_weights: Return the attention weights of each token.

    Returns:
        One output for each item, with its score and the log-probability of each token.

    Raises:
        ImpossibleError: If no output is allowed. Greedy search cannot backtrack, so no_repeat_ngram can leave
            it without a token; use beam search instead.
        ShapeError: If a tensor does not have one row for each item, or an automaton has another vocabulary.
        ValueRangeError: If a length, a prefix or the end symbol is out of range.

    Examples:
        >>> from foveal.models import LanguageModelSpec
        >>> model = LanguageModelSpec().build(vocabulary=9).eval()
        >>> found = greedy(model.stepper(), model.start(2), begin=1, end=2, max_length=5)
        >>> found.scores.shape    # 1 output for each of 2 items
        torch.Size([2, 1])
    """
    num_items = stepper.batch_size(state)
    limit = limit_of(max_length, min_length, num_items, "greedy")
    rules = rules_of(
        "greedy",
        num_items,
        stepper.num_tokens,
        end=end,
        limit=limit,
        complete=True,
        min_length=min_length,
        prefix=prefix,
        prefix_mask=prefix_mask,
        no_repeat_ngram=no_repeat_ngram,
        constraints=constraints,
    )
    with torch.inference_mode():
        hypotheses = write_chains(
            "greedy",
            stepper,
            state,
            first_tokens(begin, num_items, state),
            _MostProbable(),
            end=end,
            limit=limit,
            rules=rules,
            with_weights=with_weights,
        )
    return ordinary(hypotheses)


@final
class _MostProbable(AbstractChoice):
    """Chooses the most probable token of one output for each item."""

    @override
    def choose(self, step: int, allowed: Tensor) -> tuple[Tensor, Tensor]:
        """Return the largest entry of each row."""
        return largest(allowed.squeeze(1), 1)

    @override
    def keep(self, items: Tensor) -> None:
        """Do nothing: there is no state for items."""

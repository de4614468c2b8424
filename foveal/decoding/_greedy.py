"""Greedy search: at every step the most probable token.

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
    """The most probable next token, one after the other, until the end symbol, which is all that may
    come when `max_length` is reached; one output for each item, whose score is its log-probability.

    Args:
        stepper: the model.
        state: where it starts, with one hypothesis for each of B items.
        begin: the symbol that is read first; a tensor for one of each item, or for its device.
        end: the symbol that ends an output.
        max_length: longest output, the end symbol counted; a tensor for one of each item.
        min_length: shortest output, the end symbol counted.
        prefix: tokens that outputs begin with; their log-probabilities count.
        prefix_mask: True on the tokens of each prefix, which stand first in their row.
        no_repeat_ngram: no sequence of so many tokens occurs twice; 0 allows it.
        constraints: automata, all of which must accept the output.
        with_weights: keep what was read to choose each token.

    Raises:
        ImpossibleError: nothing is allowed; a greedy choice looks back at nothing, so that
            no_repeat_ngram can lead it where no token is left. Use beam search then.
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
            first_tokens(begin, num_items),
            _MostProbable(),
            end=end,
            limit=limit,
            rules=rules,
            with_weights=with_weights,
        )
    return ordinary(hypotheses)


@final
class _MostProbable(AbstractChoice):
    """One output for each item."""

    @override
    def choose(self, step: int, allowed: Tensor) -> tuple[Tensor, Tensor]:
        """The largest of each row."""
        return largest(allowed.squeeze(1), 1)

    @override
    def keep(self, items: Tensor) -> None:
        """Nothing is kept for items."""

"""Beam search: extend the K best prefixes of each length.

Axes: B items, K hypotheses, W tokens of the vocabulary, P tokens of the longest prefix.
"""

from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from ..errors import ValueRangeError
from ._automaton import Automaton
from ._beams import AbstractExpansion, Beams
from ._hypotheses import Hypotheses, ordinary
from ._limits import first_tokens, limit_of
from ._outputs import best_outputs
from ._penalties import CoveragePenalty, LengthPenalty
from ._rules import rules_of
from ._stepper import Stepper


def beam_search(
    stepper: Stepper,
    state: Any,
    *,
    begin: int | Int[Tensor, " B"],
    end: int,
    max_length: int | Int[Tensor, " B"],
    beam_size: int = 5,
    nbest: int = 1,
    length_penalty: LengthPenalty | None = None,
    coverage_penalty: CoveragePenalty | None = None,
    min_length: int = 1,
    prefix: Int[Tensor, "B P"] | None = None,
    prefix_mask: Bool[Tensor, "B P"] | None = None,
    no_repeat_ngram: int = 0,
    constraints: Sequence[Automaton] = (),
    with_weights: bool = False,
) -> Hypotheses:
    """Find the best outputs with a beam, best first, all distinct.

    Outputs are complete: at `max_length` only the end symbol is allowed.

    Without a penalty, outputs are ranked by log-probability. The model was trained for this score, there is
    no constant to tune, a beam of 1 is greedy search, items stop as early as possible, and the scores of
    n-best lists are probabilities. For long outputs such as translations, wide beams prefer outputs that
    are too short, because every token lowers the score; use a `LengthPenalty`. The search then runs until
    no live hypothesis can overtake. A `max_length` for each item, such as twice its source length, saves
    time and prevents endless repetition.

    Args:
        stepper: The model.
        state: Initial state, with one hypothesis for each of B items.
        begin: Begin symbol; a tensor gives one for each item.
        end: End symbol.
        max_length: Maximum output length, including the end symbol; a tensor gives one for each item.
        beam_size: Number of live hypotheses at each step.
        nbest: Number of outputs for each item, at most beam_size.
        length_penalty: Normalization of scores by length; None ranks by log-probability.
        coverage_penalty: Penalty for positions of the memory with little attention.
        min_length: Minimum output length, including the end symbol.
        prefix: Forced first tokens of the outputs; their log-probabilities count.
        prefix_mask: True on the tokens of each prefix, which come first in their row.
        no_repeat_ngram: Size of the n-grams that may not occur twice; 0 allows repetition.
        constraints: Automata, all of which must accept the output. It is faster to combine two with
            `a & b` beforehand.
        with_weights: Return the attention weights of each token.

    Returns:
        The `nbest` outputs of each item, with scores and the log-probability of each token.

    Raises:
        ImpossibleError: If no output is allowed, or no_repeat_ngram leaves all hypotheses of an item
            without a token.
        ShapeError: If a tensor does not have one row for each item, or an automaton has another vocabulary.
        ValueRangeError: If `nbest` is greater than `beam_size`, or a length, a prefix or the end symbol is out of
            range.

    Examples:
        >>> from foveal.models import LanguageModelSpec
        >>> model = LanguageModelSpec().build(vocabulary=9).eval()
        >>> found = beam_search(model.stepper(), model.start(2), begin=1, end=2, max_length=5, nbest=3)
        >>> found.scores.shape    # 3 outputs for each of 2 items
        torch.Size([2, 3])
    """
    if not 1 <= nbest <= beam_size:
        raise ValueRangeError(
            f"beam_search: expected 1 <= nbest <= beam_size, got nbest={nbest} and "
            f"beam_size={beam_size}. Pass beam_size={max(nbest, 1)}."
        )
    num_items = stepper.batch_size(state)
    limit = limit_of(max_length, min_length, num_items, "beam_search")
    rules = rules_of(
        "beam_search",
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
        beams = Beams(
            stepper,
            _Sum(),
            end=end,
            limit=limit,
            beam_size=beam_size,
            nbest=nbest,
            rules=rules,
            length_penalty=length_penalty,
            coverage_penalty=coverage_penalty,
            with_weights=with_weights,
        )
        tokens = first_tokens(begin, num_items, state)
        searched = beams.run(state, tokens, torch.zeros_like(tokens, dtype=torch.float32))
        hypotheses = best_outputs("beam_search", searched, nbest, end=end, limit=limit)
    return ordinary(hypotheses)


@final
class _Sum(AbstractExpansion):
    """Adds the log-probabilities of the tokens of a hypothesis."""

    @override
    def scores(self, before: Tensor, log_probs: Tensor) -> Tensor:
        """Score all continuations."""
        return log_probs + before.unsqueeze(2)

    @override
    def choose(self, places: Tensor) -> None:
        """Do nothing: there is no state apart from the scores."""

    @override
    def keep(self, items: Tensor) -> None:
        """Do nothing: there is no state for items."""

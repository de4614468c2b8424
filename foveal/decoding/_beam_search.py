"""Beam search: the K best prefixes of each length are continued.

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
    """The best outputs that a beam finds, the best first, all distinct. They are complete: at
    `max_length` nothing but the end symbol may come.

    Outputs are ranked by their log-probability unless a penalty is given: it is what the model was
    trained to give, needs no constant to be tuned, makes a beam of 1 greedy search, lets an item
    stop as early as possible, and gives n-best lists whose scores are probabilities. Models of long
    outputs, such as translation, lose by it with wide beams, as every token costs: give them a
    `LengthPenalty`. The search then runs until no live hypothesis can overtake, so that a `max_length`
    for each item, such as twice its source, saves time and keeps out endless repetition.

    Args:
        stepper: the model.
        state: where it starts, with one hypothesis for each of B items.
        begin: the symbol that is read first; a tensor for one of each item, or for its device.
        end: the symbol that ends an output.
        max_length: longest output, the end symbol counted; a tensor for one of each item.
        beam_size: hypotheses that live on at each step.
        nbest: outputs for each item, at most the beam_size.
        length_penalty: for outputs of different lengths; None ranks by log-probability.
        coverage_penalty: for places of the memory that were not read.
        min_length: shortest output, the end symbol counted.
        prefix: tokens that outputs begin with; their log-probabilities count.
        prefix_mask: True on the tokens of each prefix, which stand first in their row.
        no_repeat_ngram: no sequence of so many tokens occurs twice; 0 allows it.
        constraints: automata, all of which must accept the output; `a & b` beforehand is faster
            than two of them here.
        with_weights: keep what was read to choose each token.

    Raises:
        ImpossibleError: nothing is allowed, or no_repeat_ngram has left all hypotheses of an item
            without a token.
    """
    if not 1 <= nbest <= beam_size:
        raise ValueRangeError(
            f"beam_search: expected 1 <= nbest <= beam_size, got nbest={nbest} and beam_size={beam_size}. "
            f"A beam finds about as many good outputs as it is wide: pass beam_size={max(nbest, 1)}."
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
        tokens = first_tokens(begin, num_items)
        searched = beams.run(state, tokens, torch.zeros_like(tokens, dtype=torch.float32))
        hypotheses = best_outputs("beam_search", searched, nbest, end=end, limit=limit)
    return ordinary(hypotheses)


@final
class _Sum(AbstractExpansion):
    """The log-probability of a hypothesis is the sum of those of its tokens."""

    @override
    def scores(self, before: Tensor, log_probs: Tensor) -> Tensor:
        """Of all continuations."""
        return log_probs + before.unsqueeze(2)

    @override
    def choose(self, places: Tensor) -> None:
        """Scores are all there is."""

    @override
    def keep(self, items: Tensor) -> None:
        """Nothing is kept for items."""

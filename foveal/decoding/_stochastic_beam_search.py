"""Stochastic beam search: samples without replacement.

    G(y) = log p(y) + Gumbel noise

The K outputs with the largest G are a sample without replacement. The largest G of all outputs that
begin with a prefix is distributed as log p(prefix) + Gumbel noise, so that the tree of prefixes can
be perturbed from its root down: noise for the children of a prefix, shifted so that their maximum is
the G of the prefix itself. Children are never above their parents, and beam search finds the K
largest exactly.

    Z = max_w G(w),   G~(w) = -log( exp(-G) - exp(-Z) + exp(-G(w)) )

Reference: Kool et al. 2019, section 4, and appendix B.3 for the stable form.

Axes: B items, b those still in the batch, K hypotheses, W tokens of the vocabulary.
"""

from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from typing_extensions import override

from ..errors import ValueRangeError
from ._automaton import Automaton
from ._beams import AbstractExpansion, Beams
from ._hypotheses import Hypotheses, ordinary
from ._limits import first_tokens, limit_of
from ._noise import Generators, Noise
from ._outputs import best_outputs
from ._rules import rules_of
from ._stepper import Stepper


def stochastic_beam_search(
    stepper: Stepper,
    state: Any,
    *,
    begin: int | Int[Tensor, " B"],
    end: int,
    max_length: int | Int[Tensor, " B"],
    num_samples: int,
    generator: Generators = None,
    min_length: int = 1,
    prefix: Int[Tensor, "B P"] | None = None,
    prefix_mask: Bool[Tensor, "B P"] | None = None,
    no_repeat_ngram: int = 0,
    constraints: Sequence[Automaton] = (),
    with_weights: bool = False,
) -> Hypotheses:
    """Distinct samples in the order in which draws without replacement would come, cut off at
    `max_length`.

    Scores are perturbed log-probabilities G, the largest first. With `num_samples = k + 1`, the last
    score kappa makes unbiased estimates of the first k possible: an output of log-probability l was
    among them with probability `1 - exp(-exp(l - kappa))`. Where fewer outputs are possible than
    samples asked for, the rest have score -inf. What the rules leave is renormalized at each step;
    `log_probs` are the model's.

    Args:
        stepper: the model.
        state: where it starts, with one hypothesis for each of B items.
        begin: the symbol that is read first; a tensor for one of each item, or for its device.
        end: the symbol that ends an output.
        max_length: longest output, the end symbol counted; a tensor for one of each item.
        num_samples: how many for each item.
        generator: the source of randomness; one for each item makes what is drawn for an item
            independent of the batch it is in.
        min_length: shortest output, the end symbol counted.
        prefix: tokens that outputs begin with; their log-probabilities count.
        prefix_mask: True on the tokens of each prefix, which stand first in their row.
        no_repeat_ngram: no sequence of so many tokens occurs twice; 0 allows it.
        constraints: automata, all of which must accept the output.
        with_weights: keep what was read to choose each token.

    Raises:
        ImpossibleError: nothing is allowed.
    """
    if num_samples < 1:
        raise ValueRangeError(
            f"stochastic_beam_search: num_samples must be at least 1, got {num_samples}."
        )
    num_items = stepper.batch_size(state)
    limit = limit_of(max_length, min_length, num_items, "stochastic_beam_search")
    rules = rules_of(
        "stochastic_beam_search",
        num_items,
        stepper.num_tokens,
        end=end,
        limit=limit,
        complete=False,
        min_length=min_length,
        prefix=prefix,
        prefix_mask=prefix_mask,
        no_repeat_ngram=no_repeat_ngram,
        constraints=constraints,
    )
    noise = Noise(generator, num_items, "stochastic_beam_search")
    with torch.inference_mode():
        tokens = first_tokens(begin, num_items)
        root = noise.gumbel(1).to(tokens.device)
        beams = Beams(
            stepper,
            _Perturbed(torch.zeros_like(root), noise, num_samples),
            end=end,
            limit=limit,
            beam_size=num_samples,
            nbest=num_samples,
            rules=rules,
            with_weights=with_weights,
        )
        hypotheses = best_outputs(
            "stochastic_beam_search",
            beams.run(state, tokens, root),
            num_samples,
            end=end,
            limit=limit,
        )
    return ordinary(hypotheses)


@final
class _Perturbed(AbstractExpansion):
    """Scores G~ of all continuations, whose maximum is the score of what they continue."""

    def __init__(self, log_probs: Float[Tensor, "B 1"], noise: Noise, width: int) -> None:
        self._log_probs, self._noise, self._width = log_probs, noise, width
        self._continued = log_probs

    @override
    def scores(
        self, before: Float[Tensor, "b K"], log_probs: Float[Tensor, "b K W"]
    ) -> Float[Tensor, "b K W"]:
        """Of all continuations."""
        K, W = log_probs.shape[1:]
        before, log_probs = before.unsqueeze(2), log_probs.double()
        total = log_probs.logsumexp(2, keepdim=True)
        alive = (total > -torch.inf) & (before > -torch.inf)
        log_probs = torch.where(alive, log_probs - total, -torch.inf)
        self._continued = self._log_probs.unsqueeze(2) + log_probs
        # As many numbers at every step, whatever the other items need.
        noise = self._noise.gumbel(self._width, W)[:, :K].to(log_probs.device)
        perturbed = self._continued + noise
        largest = torch.where(alive, perturbed.amax(2, keepdim=True), 0.0)
        # log(1 - exp(x)) for x <= 0: -inf for the largest, which gets the score of its parent.
        others = torch.log1p(-torch.exp(perturbed - largest))
        gap = before - perturbed + others
        shifted = before - gap.clamp_min(0.0) - torch.log1p(torch.exp(-gap.abs()))
        return torch.where(alive & (perturbed > -torch.inf), shifted, -torch.inf)

    @override
    def choose(self, places: Int[Tensor, "b k"]) -> None:
        """These continuations live on."""
        self._log_probs = self._continued.flatten(1).gather(1, places)

    @override
    def keep(self, items: Int[Tensor, " n"]) -> None:
        """Only these items are left."""
        self._noise.keep(items)
        self._log_probs = self._log_probs[items]

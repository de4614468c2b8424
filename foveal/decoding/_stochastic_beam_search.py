"""Stochastic beam search: samples without replacement.

    G(y) = log p(y) + Gumbel noise

The K outputs with the largest G are a sample without replacement. The largest G of all outputs with a
given prefix is distributed as log p(prefix) + Gumbel noise. The tree of prefixes can therefore be
perturbed from its root down: add noise to the children of a prefix, then shift them until their maximum
equals the G of the prefix. Children never exceed their parents, and beam search finds the K largest
exactly.

    Z = max_w G(w),   G~(w) = -log( exp(-G) - exp(-Z) + exp(-G(w)) )

Reference: Kool et al. 2019, section 4, and appendix B.3 for the stable form.

Axes: B items, b items still in the batch, K hypotheses, W tokens of the vocabulary.
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
    """Draw distinct samples, in the order of sampling without replacement, truncated at `max_length`.

    Scores are perturbed log-probabilities G, largest first. With `num_samples = k + 1`, the last score kappa
    allows unbiased estimates from the first k: an output with log-probability l is among them with
    probability `1 - exp(-exp(l - kappa))`. If fewer outputs than `num_samples` are possible, the remaining
    scores are -inf. The probabilities of allowed tokens are renormalized at each step; `log_probs` are
    the model's.

    Args:
        stepper: The model.
        state: Initial state, with one hypothesis for each of B items.
        begin: Begin symbol; a tensor gives one for each item.
        end: End symbol.
        max_length: Maximum output length, including the end symbol; a tensor gives one for each item.
        num_samples: Number of samples for each item.
        generator: Random generator; a separate one for each item makes the samples of an item
            independent of its batch.
        min_length: Minimum output length, including the end symbol.
        prefix: Forced first tokens of the outputs; their log-probabilities count.
        prefix_mask: True on the tokens of each prefix, which come first in their row.
        no_repeat_ngram: Size of the n-grams that may not occur twice; 0 allows repetition.
        constraints: Automata, all of which must accept the output.
        with_weights: Return the attention weights of each token.

    Returns:
        The `num_samples` outputs of each item, by decreasing G, with the log-probability of each token.

    Raises:
        ImpossibleError: If no output is allowed.
        ShapeError: If a tensor does not have one row for each item, or an automaton has another vocabulary.
        ValueRangeError: If `num_samples`, a length, a prefix or the end symbol is out of range.

    Examples:
        >>> from foveal.models import LanguageModelSpec
        >>> model = LanguageModelSpec().build(vocabulary=9).eval()
        >>> drawn = stochastic_beam_search(
        ...     model.stepper(), model.start(2), begin=1, end=2, max_length=5, num_samples=4
        ... )
        >>> drawn.scores.shape    # 4 distinct outputs for each of 2 items
        torch.Size([2, 4])
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
        tokens = first_tokens(begin, num_items, state)
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
    """Scores continuations by G~; the maximum over the continuations equals the score of their parent."""

    def __init__(self, log_probs: Float[Tensor, "B 1"], noise: Noise, width: int) -> None:
        self._log_probs, self._noise, self._width = log_probs, noise, width
        self._continued = log_probs

    @override
    def scores(
        self, before: Float[Tensor, "b K"], log_probs: Float[Tensor, "b K W"]
    ) -> Float[Tensor, "b K W"]:
        """Score all continuations."""
        K, W = log_probs.shape[1:]
        before, log_probs = before.unsqueeze(2), log_probs.double()
        total = log_probs.logsumexp(2, keepdim=True)
        alive = (total > -torch.inf) & (before > -torch.inf)
        log_probs = torch.where(alive, log_probs - total, -torch.inf)
        self._continued = self._log_probs.unsqueeze(2) + log_probs
        # Draw the same count at every step, independently of the other items.
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
        """Keep these continuations."""
        self._log_probs = self._continued.flatten(1).gather(1, places)

    @override
    def keep(self, items: Int[Tensor, " n"]) -> None:
        """Keep only these items."""
        self._noise.keep(items)
        self._log_probs = self._log_probs[items]

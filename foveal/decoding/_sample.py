"""Sampling: draw outputs from the model's distribution, or from its most probable part.

    p(y) ~ exp( log p(y) / temperature ),   over the k most probable tokens (top-k),
                                            over the fewest tokens with total mass p (nucleus)

Reference: nucleus sampling, Holtzman et al. 2020. Each token takes one uniform number, which is looked up
in the cumulative distribution.

Axes: B items, b items still in the batch, K samples of each, M candidate tokens.
"""

from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from typing_extensions import override

from ..errors import ValueRangeError
from ._automaton import Automaton
from ._chains import AbstractChoice, write_chains
from ._hypotheses import Hypotheses, ordinary
from ._limits import first_tokens, limit_of
from ._noise import Generators, Noise
from ._rules import rules_of
from ._stepper import Stepper


def sample(
    stepper: Stepper,
    state: Any,
    *,
    begin: int | Int[Tensor, " B"],
    end: int,
    max_length: int | Int[Tensor, " B"],
    num_samples: int = 1,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: Generators = None,
    min_length: int = 1,
    prefix: Int[Tensor, "B P"] | None = None,
    prefix_mask: Bool[Tensor, "B P"] | None = None,
    no_repeat_ngram: int = 0,
    constraints: Sequence[Automaton] = (),
    with_weights: bool = False,
) -> Hypotheses:
    """Draw independent samples, truncated at `max_length`.

    Scores and log-probabilities are always the model's, for any temperature, top_k or top_p. The
    probabilities of allowed tokens are renormalized at each step.

    Args:
        stepper: The model.
        state: Initial state, with one hypothesis for each of B items.
        begin: Begin symbol; a tensor gives one for each item.
        end: End symbol.
        max_length: Maximum output length, including the end symbol; a tensor gives one for each item.
        num_samples: Number of samples for each item.
        temperature: Above 1 flatter, below 1 sharper than the model.
        top_k: Sample only from this many most probable tokens.
        top_p: Then sample from the fewest tokens with this total probability.
        generator: Random generator; a separate one for each item makes the samples of an item
            independent of its batch.
        min_length: Minimum output length, including the end symbol.
        prefix: Forced first tokens of the outputs; their log-probabilities count.
        prefix_mask: True on the tokens of each prefix, which come first in their row.
        no_repeat_ngram: Size of the n-grams that may not occur twice; 0 allows repetition.
        constraints: Automata, all of which must accept the output.
        with_weights: Return the attention weights of each token.

    Returns:
        The `num_samples` outputs of each item, in the order of sampling, with the log-probability of each token.

    Raises:
        ImpossibleError: If no output is allowed, or no_repeat_ngram leaves a sample without a token.
        ShapeError: If a tensor does not have one row for each item, or an automaton has another vocabulary.
        ValueRangeError: If `num_samples`, `temperature`, `top_k`, `top_p`, a length, a prefix or the end symbol
            is out of range.

    Examples:
        >>> from foveal.models import LanguageModelSpec
        >>> model = LanguageModelSpec().build(vocabulary=9).eval()
        >>> drawn = sample(
        ...     model.stepper(), model.start(2), begin=1, end=2, max_length=5, num_samples=4, top_p=0.9
        ... )
        >>> drawn.scores.shape    # 4 outputs for each of 2 items
        torch.Size([2, 4])
    """
    if num_samples < 1:
        raise ValueRangeError(f"sample: num_samples must be at least 1, got {num_samples}.")
    num_items = stepper.batch_size(state)
    limit = limit_of(max_length, min_length, num_items, "sample")
    rules = rules_of(
        "sample",
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
    noise = Noise(generator, num_items, "sample")
    with torch.inference_mode():
        first = first_tokens(begin, num_items, state).expand(-1, num_samples)
        draws = noise.uniform(limit.lengths(num_items), num_samples).to(first.device)
        hypotheses = write_chains(
            "sample",
            stepper,
            stepper.reorder(state, torch.zeros_like(first)),
            first,
            _Draw(draws, temperature=temperature, top_k=top_k, top_p=top_p),
            end=end,
            limit=limit,
            rules=rules,
            with_weights=with_weights,
        )
    return ordinary(hypotheses)


@final
class _Draw(AbstractChoice):
    """Draws one token for each sample.

    All uniform numbers are drawn beforehand, so they do not depend on when other items leave the batch.
    """

    def __init__(
        self,
        draws: Float[Tensor, "B T K"],
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
    ) -> None:
        if temperature <= 0 or not 0 < top_p <= 1 or (top_k is not None and top_k < 1):
            raise ValueRangeError(
                f"sample: expected temperature > 0, 0 < top_p <= 1 and top_k >= 1 (or None), got "
                f"temperature={temperature}, top_p={top_p}, top_k={top_k}. "
                f"To draw the most probable token always, use greedy."
            )
        self._draws = draws
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p

    @override
    def choose(
        self, step: int, allowed: Float[Tensor, "b K W"]
    ) -> tuple[Float[Tensor, "b K"], Int[Tensor, "b K"]]:
        """Return the log-probability and the token of each sample."""
        order = None
        scores = allowed if self.temperature == 1.0 else allowed / self.temperature
        if self.top_k is not None and self.top_k < scores.shape[2]:
            scores, order = scores.topk(self.top_k)
        elif self.top_p < 1.0:
            scores, order = scores.sort(descending=True)
        # Double precision: a draw below 1 stays below the total, and rare tokens keep their probability.
        probs = scores.softmax(-1, torch.float64)
        below = probs.cumsum(-1)
        mass = below[..., -1:]
        if self.top_p < 1.0:
            mass = torch.where(below - probs < self.top_p, below, 0.0).amax(-1, keepdim=True)
        wanted = self._draws[:, step, :, None] * mass
        # The first entry whose cumulative mass exceeds the draw has a probability above 0.
        places = torch.searchsorted(below, wanted, right=True).clamp(max=below.shape[2] - 1)
        tokens = places if order is None else order.gather(2, places)
        return allowed.gather(2, tokens).squeeze(2), tokens.squeeze(2)

    @override
    def keep(self, items: Int[Tensor, " n"]) -> None:
        """Keep only these items."""
        self._draws = self._draws[items]

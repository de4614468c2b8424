"""Sampling: draws from the model's distribution, or from its likely part.

    p(y) ~ exp( log p(y) / temperature ),   of the k most probable tokens (top-k),
                                            of the fewest that have mass p together (nucleus)

Reference: nucleus sampling, Holtzman et al. 2020. A token is drawn by one uniform number, looked up
in the cumulative distribution.

Axes: B items, b those still in the batch, K samples of each, M tokens that are drawn from.
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
    """Independent samples, in the order drawn, cut off at `max_length`; their scores and
    log-probabilities are the model's, whatever they were drawn from. What the rules leave is
    renormalized at each step.

    Args:
        stepper: the model.
        state: where it starts, with one hypothesis for each of B items.
        begin: the symbol that is read first; a tensor for one of each item, or for its device.
        end: the symbol that ends an output.
        max_length: longest output, the end symbol counted; a tensor for one of each item.
        num_samples: how many for each item.
        temperature: above 1 flatter, below 1 sharper than the model.
        top_k: draw from so many tokens only, the most probable.
        top_p: then draw from the fewest tokens that have this much mass together.
        generator: the source of randomness; one for each item makes what is drawn for an item
            independent of the batch it is in.
        min_length: shortest output, the end symbol counted.
        prefix: tokens that outputs begin with; their log-probabilities count.
        prefix_mask: True on the tokens of each prefix, which stand first in their row.
        no_repeat_ngram: no sequence of so many tokens occurs twice; 0 allows it.
        constraints: automata, all of which must accept the output.
        with_weights: keep what was read to choose each token.

    Raises:
        ImpossibleError: nothing is allowed, or no_repeat_ngram has left a sample without a token.
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
        first = first_tokens(begin, num_items).expand(-1, num_samples)
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
    """One token for each sample. All uniform numbers are drawn beforehand, so that they do not
    depend on when other items leave the batch.
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
        """The log-probability and the token of each sample."""
        order = None
        scores = allowed if self.temperature == 1.0 else allowed / self.temperature
        if self.top_k is not None and self.top_k < scores.shape[2]:
            scores, order = scores.topk(self.top_k)
        elif self.top_p < 1.0:
            scores, order = scores.sort(descending=True)
        # Double precision: a draw below 1 stays below the sum of all, and rare tokens keep their share.
        probs = scores.softmax(-1, torch.float64)
        below = probs.cumsum(-1)
        mass = below[..., -1:]
        if self.top_p < 1.0:
            mass = torch.where(below - probs < self.top_p, below, 0.0).amax(-1, keepdim=True)
        wanted = self._draws[:, step, :, None] * mass
        # The first place whose cumulative mass is above the draw has mass of its own.
        places = torch.searchsorted(below, wanted, right=True).clamp(max=below.shape[2] - 1)
        tokens = places if order is None else order.gather(2, places)
        return allowed.gather(2, tokens).squeeze(2), tokens.squeeze(2)

    @override
    def keep(self, items: Int[Tensor, " n"]) -> None:
        """Only these items are left."""
        self._draws = self._draws[items]

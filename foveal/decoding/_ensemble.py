"""Ensembles: several models combined into one.

    mixture   p(w) = sum_m share[m] p_m(w)
    product   p(w) ~ prod_m p_m(w)^share[m]

A mixture allows every token that any member allows. A product requires all members to agree, and is often
slightly better for members with similar training (log-linear interpolation, as in Marian and Sockeye).

Axes: B items, K hypotheses, W tokens of the vocabulary, S positions in memory.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, final

import torch
from jaxtyping import Int
from torch import Tensor

from ..errors import ShapeError, ValueRangeError
from ..networks import SearchStep
from ._stepper import Stepper


@final
class Ensemble:
    """A stepper that combines several models; its state is a tuple of the members' states, in order.

    The attention weights are the mean over the members, if all members attend to the same positions.

    Args:
        steppers: Members, all of one vocabulary.
        shares: Positive weight of each member; defaults to equal weights. They are divided by their sum.
        combine: "mixture" averages probabilities, "product" averages log-probabilities and normalizes them.

    Raises:
        ShapeError: If there is no member, or the members have different vocabularies.
        ValueRangeError: If there is not one positive share for each member.
    """

    def __init__(
        self,
        steppers: Sequence[Stepper],
        *,
        shares: Sequence[float] | None = None,
        combine: Literal["mixture", "product"] = "mixture",
    ) -> None:
        sizes = {stepper.num_tokens for stepper in steppers}
        if len(sizes) != 1:
            raise ShapeError(
                f"Ensemble: expected at least one stepper, all of one vocabulary, got "
                f"{len(steppers)} with num_tokens {sorted(sizes)}."
            )
        shares = [1.0] * len(steppers) if shares is None else list(shares)
        if len(shares) != len(steppers) or min(shares) <= 0:
            raise ValueRangeError(
                f"Ensemble: expected a positive weight for each of {len(steppers)} steppers, got "
                f"{shares}. Remove a stepper instead of giving it the weight 0."
            )
        self.steppers = tuple(steppers)
        self.shares = tuple(share / sum(shares) for share in shares)
        self.combine: Literal["mixture", "product"] = combine
        self.num_tokens = steppers[0].num_tokens

    def batch_size(self, state: Sequence[Any]) -> int:
        """Return the batch size of the members.

        Args:
            state: States of the members, in order.

        Returns:
            The number of items, B.
        """
        return self.steppers[0].batch_size(state[0])

    def step(self, state: Sequence[Any], tokens: Int[Tensor, "B K"]) -> SearchStep:
        """Feed the tokens to every member.

        Args:
            state: States of the members, in order.
            tokens: One token id for each hypothesis.

        Returns:
            The new states, the combined log-probabilities, and the mean attention weights.
        """
        pairs = zip(self.steppers, state, strict=True)
        stepped = [stepper.step(own, tokens) for stepper, own in pairs]
        states = tuple(each.state for each in stepped)
        if len(stepped) == 1:
            return stepped[0]._replace(state=states)
        log_probs = torch.stack([each.log_probs for each in stepped])
        if self.combine == "mixture":
            logs = log_probs.new_tensor([math.log(share) for share in self.shares])
            log_probs = (log_probs + logs[:, None, None, None]).logsumexp(0)
        else:
            shares = log_probs.new_tensor(self.shares)
            log_probs = (log_probs * shares[:, None, None, None]).sum(0).log_softmax(-1)
        return SearchStep(states, log_probs, _mean([each.weights for each in stepped]))

    def reorder(self, state: Sequence[Any], parents: Int[Tensor, "B k"]) -> tuple[Any, ...]:
        """Reorder the hypotheses of every member.

        Args:
            state: States of the members, in order.
            parents: Index of the hypothesis of item b that hypothesis k continues, as `[b, k]`.

        Returns:
            The states of the selected hypotheses.
        """
        pairs = zip(self.steppers, state, strict=True)
        return tuple(stepper.reorder(own, parents) for stepper, own in pairs)

    def keep(self, state: Sequence[Any], items: Int[Tensor, " b"]) -> tuple[Any, ...]:
        """Keep only these items in every member.

        Args:
            state: States of the members, in order.
            items: Indices of the items to keep.

        Returns:
            The states of these items.
        """
        pairs = zip(self.steppers, state, strict=True)
        return tuple(stepper.keep(own, items) for stepper, own in pairs)


def _mean(weights: list[Tensor | None]) -> Tensor | None:
    known = [each for each in weights if each is not None]
    if len(known) < len(weights) or len({each.shape for each in known}) > 1:
        return None
    return torch.stack(known).mean(0)

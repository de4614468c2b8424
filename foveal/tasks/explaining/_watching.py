"""A stepper that records a search and can override the attention of the model.

A search calls `step` for every prefix that it keeps, so this stepper can record the prefixes without any change to the
search.

Axes: K hypotheses of the one input, k hypotheses after a selection, S positions, W tokens of the vocabulary.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...networks import SearchStep
from ..base._speaking import Speaking

DEAD = -2  # marks hypotheses without a branch: the beam is wider than the number of continuations
ROOT = -1


class Kept(NamedTuple):
    """A prefix that the search kept: its last token, after the prefix `parent`."""

    token: int
    parent: int
    log_prob: float


class WatchedState(NamedTuple):
    """The state of a search and the branches that it has kept."""

    state: Any
    step: int = 0
    branches: tuple[int, ...] = (ROOT,)  # the prefix of each hypothesis
    log_probs: Float[Tensor, "1 K W"] | None = (
        None  # log-probabilities of the next token; None before the first step
    )


@final
class Watched:
    """The steps of one search for one input. `kept` is filled while the search runs."""

    def __init__(self, stepper: Speaking, forced: Mapping[int, Float[Tensor, " S"]]) -> None:
        self._stepper, self._forced = stepper, forced
        self.num_tokens = stepper.num_tokens
        self.kept = list[Kept]()

    def batch_size(self, state: WatchedState) -> int:
        """Return 1, the number of inputs."""
        return self._stepper.batch_size(state.state)

    def step(self, state: WatchedState, tokens: Int[Tensor, "1 K"]) -> SearchStep:
        """Advance every hypothesis by one token, with the forced attention if there is any."""
        branches = self._grown(state, tokens)
        forced = self._forced.get(state.step)
        if forced is not None:
            forced = forced.expand(*tokens.shape, -1)
        after, log_probs, weights = self._stepper.step(state.state, tokens, forced)
        return SearchStep(
            WatchedState(after, state.step + 1, branches, log_probs), log_probs, weights
        )

    def reorder(self, state: WatchedState, parents: Int[Tensor, "1 k"]) -> WatchedState:
        """Reorder the hypotheses: hypothesis k continues `parents[0, k]`."""
        rows = parents[0].tolist()
        assert state.log_probs is not None
        return state._replace(
            state=self._stepper.reorder(state.state, parents),
            branches=tuple(state.branches[row] for row in rows),
            log_probs=state.log_probs[:, parents[0]],
        )

    def keep(self, state: WatchedState, items: Int[Tensor, " b"]) -> WatchedState:
        """Return the state unchanged, because there is only one input."""
        return state._replace(state=self._stepper.keep(state.state, items))

    def _grown(self, state: WatchedState, tokens: Tensor) -> tuple[int, ...]:
        """Return the branch of each hypothesis with its new token."""
        if state.log_probs is None:  # the begin token
            return state.branches
        chosen = state.log_probs[0].gather(1, tokens[0].unsqueeze(1)).squeeze(1).tolist()
        branches = list[int]()
        for token, parent, log_prob in zip(tokens[0].tolist(), state.branches, chosen, strict=True):
            alive = parent != DEAD and log_prob > -torch.inf
            branches.append(len(self.kept) if alive else DEAD)
            if alive:
                self.kept.append(Kept(token, parent, log_prob))
        return tuple(branches)


def branch_of(kept: Sequence[Kept], tokens: Sequence[int]) -> int:
    """Return the index of the prefix that consists of these tokens."""
    known = {(each.parent, each.token): number for number, each in enumerate(kept)}
    at = ROOT
    for token in tokens:
        at = known[at, token]
    return at

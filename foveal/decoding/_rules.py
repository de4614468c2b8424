"""Rules that restrict the next token: prefixes, lengths, repetition, automata.

A rule forbids tokens by setting their log-probability to -inf; other tokens are unchanged.

Axes: B items, K hypotheses of each, W tokens of the vocabulary, P tokens of the longest prefix, t
tokens so far.
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..errors import ImpossibleError, ShapeError, ValueRangeError
from ._automaton import FAR, Automaton
from ._limits import Limit


class Prefix(NamedTuple):
    """Forced first tokens of the outputs."""

    tokens: Int[Tensor, "B P"]
    mask: Bool[Tensor, "B P"]
    shortest: int  # in this many steps no item has a choice


@final
class Rules:
    """The rules of one search, with the required state of its hypotheses."""

    def __init__(
        self,
        *,
        end: int,
        limit: Limit,
        complete: bool,
        min_length: int,
        prefix: Prefix | None,
        no_repeat_ngram: int,
        automaton: Automaton | None,
        states: Int[Tensor, "B 1"] | None,
    ) -> None:
        self.end, self.limit, self.min_length = end, limit, min_length
        # Outputs must end within the limit; otherwise they are truncated there.
        self.complete = complete
        self.prefix, self.no_repeat_ngram, self.automaton = prefix, no_repeat_ngram, automaton
        self._states = states
        self._history: Tensor | None = None

    def is_forced(self, step: int) -> bool:
        """Return whether no item has a choice at this step."""
        return self.prefix is not None and step < self.prefix.shortest

    def allow(self, step: int, log_probs: Float[Tensor, "B K W"]) -> Float[Tensor, "B K W"]:
        """Set the log-probabilities of forbidden tokens to -inf."""
        allowed = log_probs
        if self._history is not None and self._history.shape[2] >= self.no_repeat_ngram:
            allowed = self._without_repetition(allowed, self._history)
        if self.automaton is not None and self._states is not None:
            room = self.limit.longest if self.limit.each is None else self.limit.each[:, None, None]
            left = room - (step + 1 if self.complete else step)
            allowed = allowed.masked_fill(self.automaton.needs(self._states) > left, -torch.inf)
        else:
            if step + 1 < self.min_length:
                allowed = allowed.clone()
                allowed[..., self.end] = -torch.inf
            if self.complete and step + 1 in self.limit.stops:
                allowed = self._ending(step, allowed)
        if self.prefix is not None and step < self.prefix.tokens.shape[1]:
            token = self.prefix.tokens[:, step, None, None].expand(-1, log_probs.shape[1], 1)
            forced = torch.full_like(log_probs, -torch.inf)
            forced.scatter_(2, token, log_probs.gather(2, token))
            allowed = torch.where(self.prefix.mask[:, step, None, None], forced, allowed)
        return allowed

    def advance(self, tokens: Int[Tensor, "B k"], parents: Int[Tensor, "B k"] | None) -> None:
        """Append tokens to the hypotheses; with parents=None each hypothesis continues itself."""
        if self.automaton is not None and self._states is not None:
            states = self._states
            if parents is not None:
                states = states.gather(1, parents)
            self._states = self.automaton.follow(states.expand_as(tokens), tokens)
        if self.no_repeat_ngram:
            latest = tokens.unsqueeze(-1)
            if self._history is None:
                self._history = latest
            else:
                before = self._history
                if parents is not None:
                    before = before.gather(1, parents.unsqueeze(-1).expand(-1, -1, before.shape[2]))
                self._history = torch.cat([before, latest], 2)

    def keep(self, items: Int[Tensor, " b"]) -> None:
        """Keep only these items."""
        self.limit = self.limit.keep(items)
        if self._states is not None:
            self._states = self._states[items]
        if self._history is not None:
            self._history = self._history[items]
        if self.prefix is not None:
            tokens, mask, shortest = self.prefix
            self.prefix = Prefix(tokens[items], mask[items], shortest)

    def _ending(self, step: int, log_probs: Tensor) -> Tensor:
        """Allow only the end symbol for items that have reached their limit."""
        last = torch.full_like(log_probs, -torch.inf)
        last[..., self.end] = log_probs[..., self.end]
        if self.limit.each is None:
            return last
        return torch.where((self.limit.each == step + 1)[:, None, None], last, log_probs)

    def _without_repetition(self, log_probs: Tensor, history: Tensor) -> Tensor:
        """Forbid tokens that have already followed the last n - 1 tokens."""
        n = self.no_repeat_ngram
        ngrams = history.unfold(2, n, 1)
        latest = history[:, :, None, history.shape[2] - n + 1 :]
        repeats = (ngrams[..., :-1] == latest).all(-1)
        # A token may repeat several times: a sum of several -inf is still -inf.
        forbidden = torch.zeros_like(repeats, dtype=log_probs.dtype)
        forbidden = forbidden.masked_fill(repeats, -torch.inf)
        return log_probs.scatter_add(2, ngrams[..., -1], forbidden)


def rules_of(
    search: str,
    num_items: int,
    num_tokens: int,
    *,
    end: int,
    limit: Limit,
    complete: bool,
    min_length: int,
    prefix: Tensor | None,
    prefix_mask: Tensor | None,
    no_repeat_ngram: int,
    constraints: Sequence[Automaton],
) -> Rules:
    """Check the arguments and build the rules."""
    if not 0 <= end < num_tokens:
        raise ValueRangeError(f"{search}: end must be in 0..{num_tokens - 1}, got {end}.")
    if no_repeat_ngram < 0:
        raise ValueRangeError(
            f"{search}: no_repeat_ngram must be 0 (off) or a length, got {no_repeat_ngram}."
        )
    forced = None
    if prefix is not None:
        room = limit.longest if limit.each is None else limit.each
        room = room - 1 if complete else room
        forced = _prefix_of(search, prefix, prefix_mask, num_items, num_tokens, end, room)
    automaton, states = None, None
    if constraints:
        automaton = reduce(and_, constraints).at_least(min_length - 1)
        states = _start_of(search, automaton, num_items, num_tokens, end)
        _check_way(search, automaton, states, forced, limit, complete)
    return Rules(
        end=end,
        limit=limit,
        complete=complete,
        min_length=min_length,
        prefix=forced,
        no_repeat_ngram=no_repeat_ngram,
        automaton=automaton,
        states=states,
    )


def _prefix_of(
    search: str,
    tokens: Tensor,
    mask: Tensor | None,
    num_items: int,
    num_tokens: int,
    end: int,
    room: int | Tensor,
) -> Prefix:
    mask = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    if tokens.ndim != 2 or len(tokens) != num_items or mask.shape != tokens.shape:
        raise ShapeError(
            f"{search}: prefix and prefix_mask must have shape ({num_items}, P), a row for each "
            f"item, got {tuple(tokens.shape)} and {tuple(mask.shape)}."
        )
    lengths = mask.sum(1)
    if not torch.equal(mask, torch.arange(mask.shape[1], device=mask.device) < lengths[:, None]):
        raise ValueRangeError(
            f"{search}: a prefix has no holes, expected prefix_mask True on the first tokens of "
            f"each row and False after them. Move the tokens of a prefix to the front of its row."
        )
    tokens = tokens.masked_fill(~mask, 0)
    wrong = mask & ((tokens < 0) | (tokens >= num_tokens) | (tokens == end))
    if bool(wrong.any()) or bool((lengths > room).any()):
        raise ValueRangeError(
            f"{search}: a prefix must have tokens in 0..{num_tokens - 1} without the end symbol "
            f"{end}, and no more of them than max_length has room for, got others for items "
            f"{(wrong.any(1) | (lengths > room)).nonzero().flatten().tolist()}. "
            f"Set prefix_mask to False on padding, or raise max_length."
        )
    return Prefix(tokens, mask, int(lengths.min()) if num_items else 0)


def _start_of(
    search: str, automaton: Automaton, num_items: int, num_tokens: int, end: int
) -> Tensor:
    if (automaton.num_tokens, automaton.end) != (num_tokens, end):
        raise ShapeError(
            f"{search}: constraints must be for {num_tokens} tokens with end symbol {end}, got "
            f"{automaton.num_tokens} tokens with end symbol {automaton.end}. "
            f"Make them for the vocabulary of this model."
        )
    if len(automaton.starts) not in (1, num_items):
        raise ShapeError(
            f"{search}: constraints must have one start, or one for each of {num_items} items, got "
            f"{len(automaton.starts)}."
        )
    return automaton.starts.expand(num_items).unsqueeze(1)


def _check_way(
    search: str,
    automaton: Automaton,
    states: Tensor,
    prefix: Prefix | None,
    limit: Limit,
    complete: bool,
) -> None:
    """Check that an allowed output begins with the prefix and is short enough."""
    lost = torch.zeros_like(states, dtype=torch.bool)
    left = limit.longest if limit.each is None else limit.each.unsqueeze(1)
    left = left - 1 if complete else left
    if prefix is not None:
        for step in range(prefix.tokens.shape[1]):
            tokens, real = prefix.tokens[:, step, None], prefix.mask[:, step, None]
            lost |= real & (automaton.needs(states).gather(2, tokens[..., None])[..., 0] >= FAR)
            states = torch.where(real, automaton.follow(states, tokens), states)
        left = left - prefix.mask.sum(1, keepdim=True)
    distances = automaton.distances[states].masked_fill(lost, FAR)
    short = (distances > left).squeeze(1)
    if bool(short.any()):
        nearest = int(distances[short].min())
        ways = (
            "no output with this prefix is allowed at any length"
            if nearest >= FAR
            else f"the shortest needs {nearest} tokens after the prefix, and the end symbol"
        )
        raise ImpossibleError(
            f"{search}: expected constraints with an allowed output of at most "
            f"max_length={limit.longest} tokens that begins with the prefix, got none for items "
            f"{short.nonzero().flatten().tolist()}: {ways}. Raise max_length, lower min_length, or "
            f"change the prefix or the constraints."
        )

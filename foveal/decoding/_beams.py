"""The engine of beam search: K live hypotheses for each item, and the finished hypotheses.

Each step extends every live hypothesis with every token and keeps the K best continuations. A hypothesis
can end if fewer than K of the continuations are better; its score then competes with the hypotheses that
ended before. An item is done when no live hypothesis can overtake its N-th best output. The bound holds
with penalties:

    bound(live) = score(live) / divisor(max_length) >= every score that it can reach

because log-probabilities only decrease, and divisors and coverage only increase.

Only scores are copied from step to step. Each step records the extended hypotheses (`parents`) and their
new tokens (`tokens`), and the outputs are traced back once, at the end.

Axes: B items, b items still in the batch, K hypotheses, N outputs, W tokens of the vocabulary, S
positions in memory, T steps.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from ..errors import ShapeError
from ._journal import Journal, staying
from ._limits import Limit
from ._penalties import CoveragePenalty, LengthPenalty
from ._rules import Rules
from ._selection import largest
from ._stepper import Stepper


class AbstractExpansion(ABC):
    """Combines the score of a hypothesis and the log-probability of a token into one score."""

    @abstractmethod
    def scores(
        self, before: Float[Tensor, "b K"], log_probs: Float[Tensor, "b K W"]
    ) -> Float[Tensor, "b K W"]:
        """Score all continuations, none higher than its parent, in a new tensor that the search may modify."""

    @abstractmethod
    def choose(self, places: Int[Tensor, "b k"]) -> None:
        """Keep these continuations, numbered `parent * W + token`."""

    @abstractmethod
    def keep(self, items: Int[Tensor, " n"]) -> None:
        """Keep only these items."""


class Searched(NamedTuple):
    """The record of a search, from which its outputs are traced back."""

    journal: Journal
    cut: Float[Tensor, "B K"]  # scores of hypotheses that were alive at the limit
    with_weights: bool


# The entries of the journal, in order; the second row refers to the hypotheses before the step.
PARENTS, TOKENS, LOG_PROBS = 0, 1, 2
ENDED, END_LOG_PROBS, WAS_DONE, WEIGHTS = 3, 4, 5, 6


@final
class Beams:
    """One beam search: its settings and its state."""

    def __init__(
        self,
        stepper: Stepper,
        expansion: AbstractExpansion,
        *,
        end: int,
        limit: Limit,
        beam_size: int,
        nbest: int,
        rules: Rules,
        length_penalty: LengthPenalty | None = None,
        coverage_penalty: CoveragePenalty | None = None,
        with_weights: bool = False,
    ) -> None:
        self._stepper, self._expansion, self._rules = stepper, expansion, rules
        self._end, self._limit, self._beam_size, self._nbest = end, limit, beam_size, nbest
        self._length_penalty, self._coverage_penalty = length_penalty, coverage_penalty
        self._with_weights = with_weights
        self._coverage: Tensor | None = None
        # The largest possible divisor of the score of a live hypothesis.
        self._bound: float | Tensor | None = None
        if length_penalty is not None:
            self._bound = _divisors(length_penalty, limit)

    def run(self, state: Any, tokens: Int[Tensor, "B 1"], scores: Float[Tensor, "B 1"]) -> Searched:
        """Search from one hypothesis for each item, with the given score."""
        journal, longest = Journal(len(tokens)), self._limit.longest
        cut = pool = torch.empty(0)
        weights: Tensor | None = None
        done = torch.zeros_like(tokens, dtype=torch.bool)
        for step in range(longest):
            state, log_probs, weights = self._stepper.step(state, tokens)
            ended, scores, places = self._continue(step, scores, log_probs)
            if step == 0:  # not earlier: only now do the scores have the dtype of the model
                cut = scores.new_full((len(tokens), self._beam_size), -torch.inf)
                pool = scores.new_full((len(tokens), self._nbest), -torch.inf)
            num_tokens = log_probs.shape[2]
            parents, tokens = places // num_tokens, places % num_tokens
            ended = self._penalized(ended, step, parents, weights)
            self._write(journal, parents, tokens, places, log_probs, ended, done, weights)
            pool = _merged(pool, ended)
            if step + 1 in self._limit.stops:
                cut[journal.items] = self._cut_off(cut[journal.items], scores, step, done)
            done = self._is_done(step, pool, scores)
            num_done = int(done.sum())
            if num_done == len(done) or step + 1 == longest:
                break
            if (items := staying(done, num_done)) is not None:
                state = self._keep(state, items)
                journal.keep(items)
                tokens, parents, scores = tokens[items], parents[items], scores[items]
                pool, done = pool[items], done[items]
            self._rules.advance(tokens, parents)
            state = self._stepper.reorder(state, parents)
        return Searched(journal, cut, self._with_weights and weights is not None)

    def _continue(self, step: int, scores: Tensor, log_probs: Tensor) -> tuple[Tensor, ...]:
        """Return the scores of ending hypotheses, the scores of live ones, and the kept continuations."""
        beam_size = 1 if self._rules.is_forced(step) else self._beam_size
        continued = self._expansion.scores(scores, self._rules.allow(step, log_probs))
        ending = continued[..., self._end]
        ended = ending.clone()
        ending.fill_(-torch.inf)
        scores, places = largest(continued.flatten(1), beam_size)
        if scores.shape[1] == self._beam_size:
            ended.masked_fill_(ended < scores[:, -1:], -torch.inf)
        self._expansion.choose(places)
        return ended, scores, places

    def _penalized(
        self, ended: Tensor, step: int, parents: Tensor, weights: Tensor | None
    ) -> Tensor:
        """Return the ranking scores of ended hypotheses, and update the coverage of the live ones."""
        if self._length_penalty is not None:
            ended = ended / self._length_penalty.divisor(step + 1)
        if self._coverage_penalty is not None:
            if weights is None:
                raise ShapeError(
                    "beam_search: a coverage penalty needs a model with attention, got a stepper "
                    "without weights. Remove coverage_penalty."
                )
            covered = weights if self._coverage is None else self._coverage + weights
            ended = ended + self._coverage_penalty.score(covered)
            self._coverage = covered.gather(1, _wide(parents, covered))
        return ended

    def _cut_off(self, cut: Tensor, scores: Tensor, step: int, done: Tensor) -> Tensor:
        """Record the scores of live hypotheses of the items that have reached their limit."""
        if self._length_penalty is not None:
            scores = scores / self._length_penalty.divisor(step + 1)
        if self._coverage_penalty is not None and self._coverage is not None:
            scores = scores + self._coverage_penalty.score(self._coverage)
        scores = pad(scores, (0, self._beam_size - scores.shape[1]), value=-torch.inf)
        now = ~done
        if self._limit.each is not None:
            now = now & (self._limit.each == step + 1).unsqueeze(1)
        return torch.where(now, scores, cut)

    def _is_done(self, step: int, pool: Tensor, scores: Tensor) -> Tensor:
        """Return the items whose N-th best finished hypothesis no live hypothesis can overtake."""
        best = scores[:, :1] if self._bound is None else scores[:, :1] / self._bound
        done = (pool if self._nbest == 1 else pool[:, -1:]) >= best
        if self._limit.each is not None:
            done = done | (self._limit.each <= step + 1).unsqueeze(1)
        return done

    def _keep(self, state: Any, items: Tensor) -> Any:
        """Keep only these items."""
        self._limit = self._limit.keep(items)
        self._expansion.keep(items)
        self._rules.keep(items)
        if self._coverage_penalty is not None and self._coverage is not None:
            self._coverage_penalty = self._coverage_penalty.keep(items)
            self._coverage = self._coverage[items]
        if isinstance(self._bound, Tensor):
            self._bound = self._bound[items]
        return self._stepper.keep(state, items)

    def _write(
        self,
        journal: Journal,
        parents: Tensor,
        tokens: Tensor,
        places: Tensor,
        log_probs: Tensor,
        ended: Tensor,
        done: Tensor,
        weights: Tensor | None,
    ) -> None:
        """Write one row of the journal; the first steps may have fewer hypotheses than later ones."""
        entries = [parents, tokens, log_probs.flatten(1).gather(1, places)]
        entries += [ended, log_probs[..., self._end].clone()]
        if self._with_weights and weights is not None:
            entries.append(weights)
        if min(parents.shape[1], ended.shape[1]) < self._beam_size:
            for i, entry in enumerate(entries):
                missing = self._beam_size - entry.shape[1]
                value = -torch.inf if i == ENDED else 0
                entries[i] = pad(entry.movedim(1, -1), (0, missing), value=value).movedim(-1, 1)
        journal.write(*entries[:WAS_DONE], done, *entries[WAS_DONE:])


def _merged(pool: Float[Tensor, "b N"], ended: Float[Tensor, "b K"]) -> Float[Tensor, "b N"]:
    """Return the N best scores, best first."""
    if pool.shape[1] == 1:
        return torch.maximum(pool, ended.amax(1, keepdim=True))
    return torch.cat([pool, ended], 1).topk(pool.shape[1]).values


def _wide(parents: Int[Tensor, "b k"], values: Float[Tensor, "b K S"]) -> Int[Tensor, "b k S"]:
    return parents.unsqueeze(2).expand(-1, -1, values.shape[2])


def _divisors(penalty: LengthPenalty, limit: Limit) -> float | Tensor:
    """Return the divisors of the longest outputs, which are the largest."""
    if limit.each is None:
        return penalty.divisor(limit.longest)
    each = [[penalty.divisor(length)] for length in limit.each.tolist()]
    return torch.tensor(each, device=limit.each.device)

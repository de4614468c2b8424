"""Where a run is: counts, scores and times, as plain numbers that a checkpoint can hold.

Validations are due by counts, never by the clock, so that the same seed gives the same run:

    progress since the last one >= 1 / 100    and    examples since >= 10 validation sets
    and    steps since >= 50

Decoding an example freely costs less than half of training on it (no backward, but one step after
another), so ten times as many examples keep validation near 5 % of the time; the other two bounds
keep a tiny validation set from being decoded after every few batches, and a huge corpus from being
scored a thousand times.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from .._spec import TrainingSpec

MOST_EVALUATIONS = 100  # of a run
EXAMPLES_FOR_ONE = 10  # trained on, for each that is decoded
LEAST_STEPS = 50  # between two validations
MAX_SHARE = 0.1  # of the time in validations; the user is told of more
SEARCH_COST = 3.0  # a beam takes about three times as long as the greedy search of validations
MAX_RESERVED = 0.25  # of the time, for scoring at the end
MIN_SCORED = 100  # examples that are always scored


class EpochSize(NamedTuple):
    """What is known of the length of an epoch. A corpus that is held knows its batches; of one that is
    too large, the examples may be known; else the batches of the epoch before are taken, and in the
    first epoch the part that is over counts as 0.
    """

    num_batches: int | None
    num_examples: int | None


class Score(NamedTuple):
    """What a validation is compared by: the main metric, and the task's next one where that is equal.
    On a hundred words the one moves in steps of 1 %, the other in smaller ones.
    """

    value: float
    tie: float = 0.0  # higher is better

    def beats(self, best: "Score | None", *, higher: bool) -> bool:
        """Whether it is better than the best so far; what is not a number beats none.

        >>> Score(18.0, -4.1).beats(Score(18.0, -4.3), higher=False)
        True
        """
        if math.isnan(self.value):
            return False
        if best is None or self.value == best.value:
            return best is None or self.tie > best.tie
        return (self.value > best.value) == higher


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """A run after some steps. All processes have the same."""

    step: int = 0
    progress: float = 0.0  # share of the run that is over
    seen: int = 0  # examples trained on
    epochs: float = 0.0  # readings of the data, the part of this one included
    epoch: int = 0  # of the latest batch
    batches: int = 0  # of this epoch
    batches_before: int = 0  # of the epoch before; 0 in the first
    seen_before: int = 0  # examples in the epochs before
    seconds: float = 0.0  # validation included
    validating: float = 0.0  # seconds of it
    evaluated_step: int = 0
    evaluated_progress: float = 0.0
    evaluated_seen: int = 0
    best_step: int = 0
    best_value: float | None = None
    best_tie: float = 0.0
    unimproved: int = 0  # validations since the best
    cost: float = 0.0  # seconds that the latest validation took for an example

    @property
    def share(self) -> float:
        """Of the time that went into validations."""
        return self.validating / self.seconds if self.seconds else 0.0

    @property
    def best(self) -> Score | None:
        """The best score so far."""
        return None if self.best_value is None else Score(self.best_value, self.best_tie)

    def after_evaluation(
        self, score: Score, seconds: float, *, improved: bool, size: int
    ) -> "Position":
        """With one more validation, of so many examples, which took so long."""
        at = replace(
            self,
            validating=self.validating + seconds,
            seconds=self.seconds + seconds,
            evaluated_step=self.step,
            evaluated_progress=self.progress,
            evaluated_seen=self.seen,
            unimproved=0 if improved else self.unimproved + 1,
            cost=seconds / size,
        )
        if not improved:
            return at
        return replace(at, best_step=self.step, best_value=score.value, best_tie=score.tie)

    def after_batches(self, epochs: Sequence[int], rows: int, size: EpochSize) -> "Position":
        """With some more batches.

        Args:
            epochs: of each batch.
            rows: examples in all of them, of all processes.
            size: what is known of the length of an epoch.
        """
        at = self
        for epoch in epochs:
            if epoch == at.epoch:
                at = replace(at, batches=at.batches + 1)
            else:
                at = replace(
                    at, epoch=epoch, batches=1, batches_before=at.batches, seen_before=at.seen
                )
        at = replace(at, seen=at.seen + rows)
        if size.num_batches:
            part = at.batches / size.num_batches
        elif size.num_examples:
            part = (at.seen - at.seen_before) / size.num_examples
        else:
            part = at.batches / at.batches_before if at.batches_before else 0.0
        return replace(at, epochs=at.epoch + min(1.0, part))

    def under(self, spec: TrainingSpec) -> "Position":
        """The same place in a run that is to be shorter or longer than was thought."""
        progress = progress_of(spec, step=self.step, epochs=self.epochs, seconds=self.seconds)
        evaluated = min(self.evaluated_progress, progress)
        return replace(self, progress=progress, evaluated_progress=evaluated)


def progress_of(spec: TrainingSpec, *, step: int, epochs: float, seconds: float) -> float:
    """The share of a run that is over: the largest of its limits' shares, at most 1."""
    limits = ((step, spec.steps), (epochs, spec.epochs), (seconds / 60, spec.minutes))
    return min(1.0, max(done / limit for done, limit in limits if limit is not None))


def reserved(spec: TrainingSpec, at: Position, num_scored: int) -> float:
    """Seconds to keep for scoring so many examples at the end of a run whose minutes are bounded."""
    if spec.minutes is None:
        return 0.0
    return min(MAX_RESERVED * 60 * spec.minutes, SEARCH_COST * at.cost * num_scored)


def num_affordable(spec: TrainingSpec, at: Position, num: int, num_scored: int) -> int:
    """How many of a set's examples there is time to score, if so many are to be scored in all."""
    if spec.minutes is None or not at.cost:
        return num
    left = max(0.0, 60 * spec.minutes - at.seconds) / (SEARCH_COST * at.cost * num_scored)
    return min(num, max(MIN_SCORED, int(num * left)))


def evaluation_due(spec: TrainingSpec, at: Position, num_validated: int) -> bool:
    """Whether a validation of so many examples should follow the step just made."""
    since = at.step - at.evaluated_step
    if spec.evaluate_every is not None:
        return since >= spec.evaluate_every
    return (
        since >= LEAST_STEPS
        and at.progress - at.evaluated_progress >= 1 / MOST_EVALUATIONS - 1e-9  # 0.03 - 0.02 < 0.01
        and at.seen - at.evaluated_seen >= EXAMPLES_FOR_ONE * num_validated
    )

"""The progress of a run: counts, scores and times, as plain numbers that a checkpoint can hold.

Validations are scheduled by counts, never by the clock, so the same seed gives the same run:

    progress since the last one >= 1 / 100    and    examples since >= 10 validation sets
    and    steps since >= 50

Free decoding of an example costs less than half of training on it (no backward pass, but sequential steps), so a factor
of ten keeps validation near 5 % of the time. The other two bounds prevent validating a tiny validation set after every
few batches, and scoring a huge corpus a thousand times.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from .._spec import TrainingSpec

MOST_EVALUATIONS = 100  # validations per run
EXAMPLES_FOR_ONE = 10  # training examples for each decoded example
LEAST_STEPS = 50  # steps between two validations
MAX_SHARE = 0.1  # fraction of the time in validations above which the user gets a warning
SEARCH_COST = 3.0  # beam search takes about three times as long as the greedy search of validations
MAX_RESERVED = 0.25  # fraction of the time for scoring at the end
MIN_SCORED = 100  # examples that are always scored


class EpochSize(NamedTuple):
    """The known length of an epoch.

    A corpus in memory knows its number of batches. For a larger one, the number of examples may be known; otherwise,
    the number of batches of the previous epoch is used, and the first epoch counts as 0 until it ends.
    """

    num_batches: int | None
    num_examples: int | None


class Score(NamedTuple):
    """The score by which validations are compared: the main metric, and the task's next metric for ties.

    On a hundred words, the main metric moves in steps of 1 %, the other one in smaller steps.
    """

    value: float
    tie: float = 0.0  # higher is better

    def beats(self, best: "Score | None", *, higher: bool) -> bool:
        """Return True if this score is better than the best so far; NaN never is.

        Args:
            best: Best score so far; None if there is none.
            higher: Whether a higher value is better.

        Returns:
            False for equal scores.

        Examples:
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
    """The position of a run after some steps, equal in all processes."""

    step: int = 0
    progress: float = 0.0  # completed fraction of the run
    seen: int = 0  # examples trained on
    epochs: float = 0.0  # passes over the data, including the current fraction
    epoch: int = 0  # epoch of the latest batch
    batches: int = 0  # batches in this epoch
    batches_before: int = 0  # batches in the previous epoch; 0 in the first
    seen_before: int = 0  # examples in the previous epochs
    seconds: float = 0.0  # including validation
    validating: float = 0.0  # seconds of validation
    evaluated_step: int = 0
    evaluated_progress: float = 0.0
    evaluated_seen: int = 0
    best_step: int = 0
    best_value: float | None = None
    best_tie: float = 0.0
    unimproved: int = 0  # validations since the best
    cost: float = 0.0  # seconds per example in the latest validation

    @property
    def share(self) -> float:
        """The fraction of the time spent on validation."""
        return self.validating / self.seconds if self.seconds else 0.0

    @property
    def best(self) -> Score | None:
        """The best score so far."""
        return None if self.best_value is None else Score(self.best_value, self.best_tie)

    def after_evaluation(
        self, score: Score, seconds: float, *, improved: bool, size: int
    ) -> "Position":
        """Return the position after one more validation."""
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
        """Return the position after some more batches.

        Args:
            epochs: The epoch of each batch.
            rows: The number of examples in all batches, over all processes.
            size: The known length of an epoch.

        Returns:
            The new position.
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
        """Return the position under a spec with another length."""
        progress = progress_of(spec, step=self.step, epochs=self.epochs, seconds=self.seconds)
        evaluated = min(self.evaluated_progress, progress)
        return replace(self, progress=progress, evaluated_progress=evaluated)


def progress_of(spec: TrainingSpec, *, step: int, epochs: float, seconds: float) -> float:
    """Return the completed fraction of a run: the largest fraction over its limits, at most 1."""
    limits = ((step, spec.steps), (epochs, spec.epochs), (seconds / 60, spec.minutes))
    return min(1.0, max(done / limit for done, limit in limits if limit is not None))


def reserved(spec: TrainingSpec, at: Position, num_scored: int) -> float:
    """Return the seconds to reserve for scoring at the end of a run that is limited by minutes."""
    if spec.minutes is None:
        return 0.0
    return min(MAX_RESERVED * 60 * spec.minutes, SEARCH_COST * at.cost * num_scored)


def num_affordable(spec: TrainingSpec, at: Position, num: int, num_scored: int) -> int:
    """Return the number of examples of a set that can be scored in time, given the total number to score."""
    if spec.minutes is None or not at.cost:
        return num
    left = max(0.0, 60 * spec.minutes - at.seconds) / (SEARCH_COST * at.cost * num_scored)
    return min(num, max(MIN_SCORED, int(num * left)))


def evaluation_due(spec: TrainingSpec, at: Position, num_validated: int) -> bool:
    """Return True if a validation of `num_validated` examples is due after the latest step."""
    since = at.step - at.evaluated_step
    if spec.evaluate_every is not None:
        return since >= spec.evaluate_every
    return (
        since >= LEAST_STEPS
        and at.progress - at.evaluated_progress >= 1 / MOST_EVALUATIONS - 1e-9  # 0.03 - 0.02 < 0.01
        and at.seen - at.evaluated_seen >= EXAMPLES_FOR_ONE * num_validated
    )

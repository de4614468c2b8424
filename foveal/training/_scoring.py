"""Score a trained and saved model on all examples, or on a subset that fits into the remaining time."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..bundles import save_bundle
from ..data import Example
from ..data._example import evenly_spaced
from ..tasks import AbstractTask, Evaluation
from ._loop import Loop
from ._spec import TrainingSpec
from .checkpoints._interrupt import Interrupt
from .checkpoints._position import num_affordable
from .events._events import Scoring

_PAUSE = 5.0  # seconds between two events about one set


class Scorer:
    """Calibrates and scores a saved model; a signal may interrupt it.

    Args:
        task: The trained task.
        spec: The training spec; `minutes` includes the time for scoring.
        folder: The folder of the run.
        loop: The training loop, which sends the progress events.
        interrupt: The handler of signals.
        num_scored: The total number of examples to score.
    """

    def __init__(
        self,
        task: AbstractTask[Any],
        spec: TrainingSpec,
        folder: Path,
        loop: Loop,
        interrupt: Interrupt,
        num_scored: int,
    ) -> None:
        self._task, self._spec, self._folder = task, spec, folder
        self._loop, self._interrupt, self._num_scored = loop, interrupt, num_scored

    def score(self, sets: Mapping[str, Sequence[Example]], found: dict[str, Evaluation]) -> bool:
        """Score a model on named sets of examples.

        Args:
            sets: Sets of examples by name; dev calibrates the model first.
            found: The mapping that receives each evaluation as it is made.

        Returns:
            False if a signal interrupted the scoring.
        """
        try:
            with self._interrupt.immediate():
                some = {name: self._affordable(name, all_) for name, all_ in sets.items() if all_}
                if "dev" in some:
                    self._loop.tell(self._event("dev", 0, len(some["dev"])))
                    self._task.calibrate(some["dev"])
                    save_bundle(self._task, self._folder)
                for name, examples in some.items():
                    told = self._progress(name, len(examples))
                    found[name] = self._task.evaluate(examples, answered=told)
        except KeyboardInterrupt:
            self._loop.warn(
                f"scoring was interrupted. The model is saved; score it with: foveal evaluate "
                f"{self._folder} FILE"
            )
            return False
        return True

    def _affordable(self, name: str, examples: Sequence[Example]) -> Sequence[Example]:
        num = num_affordable(self._spec, self._loop.at, len(examples), self._num_scored)
        if num == len(examples):
            return examples
        self._loop.warn(
            f"scored {num:,} of {len(examples):,} {name} examples, because "
            f"minutes={self._spec.minutes:g} leaves no time for more. To score all of them: foveal "
            f"evaluate {self._folder} FILE"
        )
        return evenly_spaced(examples, num)

    def _progress(self, name: str, total: int) -> Callable[[int], None]:
        done, said = 0, time.monotonic()

        def told(number: int) -> None:
            nonlocal done, said
            done += number
            if time.monotonic() - said >= _PAUSE:
                said = time.monotonic()
                self._loop.tell(self._event(name, done, total))

        return told

    def _event(self, name: str, done: int, total: int) -> Scoring:
        return Scoring(step=self._loop.at.step, name=name, done=done, total=total)

"""The doctor during a run: reports each alarm once, when it appears."""

from collections.abc import Callable
from typing import Any, final

from ...training import Evaluated, Event, Started, StepDone, TrainingSpec
from ...training.events._events import Probed
from ._finding import Finding
from ._from_curves import alarms_of_curves
from ._from_signs import from_signs
from ._history import History
from ._remedies import Remedies

# Attention begins uniform, and the loss begins at the level of guessing. Early in a run, neither is a fault.
_TIME_TO_LEARN = 0.25  # fraction of the run
_FAILED = "no diagnosis"
_AT_ONCE = ("exploding gradient", "learning rate too high", "no mask", "leaked padding", _FAILED)

# The curves, by their names in the log.
_LOGGED = {
    Started: "started",
    StepDone: "step_done",
    Evaluated: "evaluated",
    Probed: "probed",
}


@final
class Watch:
    """A listener that passes every new alarm to a function. It never ends the run: if it fails, it reports the
    failure and stops watching.

    Args:
        say: The function that receives an alarm.
        task: The spec of the task, to name remedies.
        training: The training settings.
    """

    def __init__(self, say: Callable[[Finding], None], task: Any, training: TrainingSpec) -> None:
        self._say, self._remedies = say, Remedies(task, training)
        self._history = History()
        self._said: set[str] = set()
        self._has_failed = False

    def __call__(self, event: Event) -> None:
        """Receive one event, and check for alarms at every probe."""
        if type(event) in _LOGGED:
            self._history.add({"event": _LOGGED[type(event)], **vars(event)})
        if not isinstance(event, Probed) or self._has_failed:
            return
        try:
            found = self._findings(event)
        except Exception as error:  # any failure: the run matters more
            self._has_failed = True
            found = [_failure(error)]
        for finding in found:
            is_time = finding.name in _AT_ONCE or self._history.progress >= _TIME_TO_LEARN
            if finding.severity == "alarm" and is_time and finding.name not in self._said:
                self._said.add(finding.name)
                self._say(finding)

    def _findings(self, event: Probed) -> list[Finding]:
        return [
            *alarms_of_curves(self._history, self._remedies),
            *from_signs(event.readings, self._remedies),
        ]


def _failure(error: Exception) -> Finding:
    return Finding(
        name=_FAILED,
        severity="alarm",
        text=f"the doctor failed on the measurements ({error!r}); the run continues.",
        cause="a bug of the doctor, not a problem of the run",
        remedy="none for this run; please report the bug",
    )

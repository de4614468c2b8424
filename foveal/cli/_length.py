"""A note for runs with too little time: the expected number of epochs, and the recommended one."""

from typing import final

from rich.console import Console

from ..training import Event, StepDone

_MEASURED = 5.0  # seconds of training that determine the speed well enough
_SHORT = 0.5  # fraction of the recommended epochs: with fewer, the model is unlikely to be useful


@final
class LengthNote:
    """A listener that prints one note, early in a run, if --minutes is far too short.

    Args:
        console: The console to print to.
        epochs: The recommended number of epochs for this amount of data.
    """

    def __init__(self, console: Console, epochs: float) -> None:
        self._console, self._epochs, self._is_over = console, epochs, False

    def __call__(self, event: Event) -> None:
        """Measure the speed of the first steps."""
        if self._is_over or not isinstance(event, StepDone):
            return
        if event.seconds < _MEASURED or not event.progress or not event.epoch:
            return
        self._is_over = True
        expected = event.epoch / event.progress
        if expected < _SHORT * self._epochs:
            needed = event.seconds / event.epoch * self._epochs / 60
            self._console.print(
                f"note: --minutes is enough for {expected:.2g} epochs; for this amount of data, {self._epochs:.2g} epochs are "
                f"recommended, about {max(1, round(needed)):,} minutes. The model will probably underfit: increase "
                f"--minutes, or remove it.",
                style="yellow",
                markup=False,
                soft_wrap=True,
            )

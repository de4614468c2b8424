"""What a user sees of a run: a bar with loss, score, speed and time left on a terminal, plain lines
where there is none (a file, a batch queue).
"""

from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from ._events import (
    Checkpointed,
    Evaluated,
    Event,
    Failed,
    Finished,
    Improved,
    Probed,
    Started,
    StepDone,
    Stopped,
    ThreadsChosen,
    Warned,
)

_PLAIN_SECONDS = 10.0  # between plain lines about the loss
_SMOOTH = 0.1  # weight of a new step in the speed and the loss that are shown


class Display:
    """Shows events on a console.

    Args:
        console: where to; the standard output by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._bar: tuple[Progress, TaskID] | None = None
        self._started = Started(step=0, processes=1, parameters=0, metric="", higher_is_better=True)
        self._first: StepDone | None = None  # of this session, to tell the time left
        self._latest: StepDone | None = None
        self._loss = self._speed = self._wait = 0.0
        self._score = ""
        self._said = -_PLAIN_SECONDS

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Started():
                self._start(event)
            case ThreadsChosen():
                number = "1 thread" if event.threads == 1 else f"{event.threads} threads"
                self._console.print(
                    f"computing with {number}: {event.reason} (--threads sets it)",
                    markup=False,
                    soft_wrap=True,
                )
            case StepDone():
                self._step(event)
            case Evaluated():
                self._show_scores(event)
            case Improved():
                self._score = f"{event.metric} {event.value:.4g}"
            case Checkpointed() | Probed():
                pass  # they happen often, and the log has them
            case Warned():
                self._console.print(
                    f"warning: {event.text}", style="yellow", markup=False, soft_wrap=True
                )
            case Stopped():
                self._console.print(event.text, markup=False, soft_wrap=True)
            case Finished():
                self._finish(event)
            case Failed():
                self._close()
                self._console.print(
                    f"failed: {event.text}", style="red", markup=False, soft_wrap=True
                )

    def _start(self, event: Started) -> None:
        self._started = event
        whence = f"going on after step {event.step:,}" if event.step else "training"
        processes = f" in {event.processes} processes" if event.processes > 1 else ""
        self._console.print(
            f"{whence}: {event.parameters:,} parameters{processes}; validation by {event.metric}, "
            f"{'higher' if event.higher_is_better else 'lower'} is better",
            markup=False,
            soft_wrap=True,
        )
        if self._console.is_terminal:
            progress = Progress(
                BarColumn(bar_width=24), TextColumn("{task.description}"), console=self._console
            )
            self._bar = progress, progress.add_task("", total=1.0)
            progress.start()

    def _step(self, event: StepDone) -> None:
        if self._latest is None:
            self._first, self._loss = event, event.loss
        else:
            taken = max(event.seconds - self._latest.seconds, 1e-9)
            speed = event.tokens / taken
            weight = _SMOOTH if self._speed else 1.0
            self._speed += weight * (speed - self._speed)
            self._wait += weight * (min(1.0, event.wait / taken) - self._wait)
            self._loss += _SMOOTH * (event.loss - self._loss)
        self._latest = event
        if self._bar is not None:
            progress, task = self._bar
            progress.update(task, completed=event.progress, description=self._line(event))
        elif event.seconds - self._said >= _PLAIN_SECONDS:
            self._said = event.seconds
            self._console.print(self._line(event), markup=False, soft_wrap=True)

    def _line(self, event: StepDone) -> str:
        parts = [
            f"step {event.step:,}",
            f"epoch {event.epoch:.1f}",
            f"loss {self._loss:.3f}",
            f"best {self._score}" if self._score else "",
            f"{self._speed:,.0f} tokens/s, data wait {self._wait:.0%}" if self._speed else "",
            self._time_left(event),
        ]
        return ", ".join(part for part in parts if part)

    def _time_left(self, event: StepDone) -> str:
        assert self._first is not None
        done = event.progress - self._first.progress
        if done <= 0:
            return ""
        left = (event.seconds - self._first.seconds) * (1 - event.progress) / done
        return f"{_duration(left)} left"

    def _show_scores(self, event: Evaluated) -> None:
        scores = _listed(event.metrics)
        self._console.print(
            f"validation after step {event.step:,}: {scores} ({event.seconds:.1f} s)", markup=False
        )
        if not event.samples:
            return
        if self._bar is None:
            for sample in event.samples:
                texts = f"{sample.source} -> {sample.output}  (expected {sample.expected})"
                self._console.print(f"  {texts}", markup=False, soft_wrap=True)
            return
        table = Table("source", "expected", "output", box=None, padding=(0, 2))
        for sample in event.samples:
            style = None if sample.output == sample.expected else "yellow"
            table.add_row(sample.source, sample.expected, sample.output, style=style)
        self._console.print(table)

    def _finish(self, event: Finished) -> None:
        self._close()
        self._console.print(
            f"finished after {event.step:,} steps in {_duration(event.seconds)}, "
            f"{event.share:.1%} of it validation; best at step {event.best_step:,}: "
            f"{_listed(event.metrics)}{f'; test {_listed(event.test)}' if event.test else ''}",
            markup=False,
            soft_wrap=True,
        )
        for text in event.warnings:
            self._console.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None


def _listed(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())


def _duration(seconds: float) -> str:
    """Hours only where there are some.

    >>> _duration(75.0), _duration(7325.0)
    ('1:15', '2:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

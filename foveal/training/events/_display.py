"""Progress display of a run: a bar with loss, score, speed and time left on a terminal, plain lines elsewhere (a file,
a batch queue).
"""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from ._events import (
    Answer,
    Checkpointed,
    Evaluated,
    Event,
    Failed,
    Finished,
    Improved,
    Probed,
    Scoring,
    Started,
    StepDone,
    Stopped,
    ThreadsChosen,
    Warned,
)

_PLAIN_SECONDS = 10.0  # seconds between plain lines about the loss
_SMOOTH = 0.1  # weight of a new step in the displayed speed and loss
_SAMPLES_EVERY = (
    1 / 3
)  # fraction of a run between validations whose samples are shown; the log has all samples
_MAX_SHOWN = 60  # characters of each text of a sample
_BAR = 16  # columns


class Display:
    """Shows events on a console.

    Args:
        console: The console to write to; defaults to the standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._bar: tuple[Progress, TaskID] | None = None
        self._started = Started(step=0, processes=1, parameters=0, metric="", higher_is_better=True)
        self._first: StepDone | None = None  # first step of this session, to estimate the time left
        self._latest: StepDone | None = None
        self._loss = self._speed = self._wait = 0.0
        self._score = ""
        self._said = -_PLAIN_SECONDS
        self._sampled_at: float | None = None  # progress at which samples were last shown

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Started():
                self._start(event)
            case ThreadsChosen():
                number = "1 thread" if event.threads == 1 else f"{event.threads} threads"
                self._console.print(
                    f"using {number}: {event.reason} (change with --threads)",
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
                pass  # they are frequent, and the log has them
            case Warned():
                self._console.print(
                    f"warning: {event.text}", style="yellow", markup=False, soft_wrap=True
                )
            case Stopped():
                self._console.print(event.text, markup=False, soft_wrap=True)
            case Scoring():
                self._show_scoring(event)
            case Finished():
                self._finish(event)
            case Failed():
                self._close()
                self._console.print(
                    f"failed: {event.text}", style="red", markup=False, soft_wrap=True
                )

    def _start(self, event: Started) -> None:
        self._started = event
        whence = f"resuming after step {event.step:,}" if event.step else "training"
        processes = f" in {event.processes} processes" if event.processes > 1 else ""
        self._console.print(
            f"{whence}: {event.parameters:,} parameters on {event.device}{processes}; validation by {event.metric}, "
            f"{'higher' if event.higher_is_better else 'lower'} is better",
            markup=False,
            soft_wrap=True,
        )
        if self._console.is_terminal:
            progress = Progress(
                BarColumn(bar_width=_BAR), TextColumn("{task.description}"), console=self._console
            )
            self._bar = progress, progress.add_task("", total=1.0)
            progress.start()

    def _step(self, event: StepDone) -> None:
        if self._latest is None:
            self._first, self._loss = event, event.loss
        else:
            taken = max(event.seconds - self._latest.seconds, 1e-9)
            speed = event.inputs * self._started.processes / taken
            weight = _SMOOTH if self._speed else 1.0
            self._speed += weight * (speed - self._speed)
            self._wait += weight * (min(1.0, event.wait / taken) - self._wait)
            self._loss += _SMOOTH * (event.loss - self._loss)
        self._latest = event
        if self._bar is not None:
            progress, task = self._bar
            room = self._console.width - _BAR - 1
            progress.update(
                task, completed=event.progress, description=self._short_line(event, room)
            )
        elif event.seconds - self._said >= _PLAIN_SECONDS:
            self._said = event.seconds
            self._console.print(self._line(event), markup=False, soft_wrap=True)

    def _line(self, event: StepDone) -> str:
        return ", ".join(self._parts(event))

    def _short_line(self, event: StepDone, room: int) -> str:
        """Return the parts of the line that fit, always with the time left."""
        *parts, left = self._parts(event)
        while parts and len(", ".join([*parts, left])) > room:
            parts.pop()
        return ", ".join([*parts, left])

    def _parts(self, event: StepDone) -> list[str]:
        """Return the parts of the line about a step, the most important first and the time left last."""
        parts = [
            f"step {event.step:,}",
            f"loss {self._loss:.3f}",
            f"best {self._score}" if self._score else "",
            f"epoch {event.epoch:.1f}",
            f"{self._speed:,.0f} tokens/s" if self._speed else "",
            f"data wait {self._wait:.0%}" if self._speed else "",
            self._time_left(event),
        ]
        return [part for part in parts if part]

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
        progress = 0.0 if self._latest is None else self._latest.progress
        since = None if self._sampled_at is None else progress - self._sampled_at
        if event.samples and (since is None or since >= _SAMPLES_EVERY):
            self._sampled_at = progress
            self._show_samples(event.samples)

    def _show_samples(self, samples: Sequence[Answer]) -> None:
        if self._bar is None:
            for source, expected, output in (map(_shortened, sample) for sample in samples):
                self._console.print(
                    f"  {source} -> {output}  (expected {expected})", markup=False, soft_wrap=True
                )
            return
        table = Table("source", "expected", "output", box=None, padding=(0, 2))
        for sample in samples:
            style = None if sample.output == sample.expected else "yellow"
            table.add_row(*map(escape, map(_shortened, sample)), style=style)
        self._console.print(table)

    def _show_scoring(self, event: Scoring) -> None:
        text = f"scoring: {event.done:,} of {event.total:,} {event.name} examples"
        if self._bar is not None and event.done:
            progress, task = self._bar
            progress.update(task, completed=event.done / event.total, description=text)
        elif self._bar is None:
            self._console.print(text, markup=False, soft_wrap=True)

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


def _shortened(text: str) -> str:
    """Return a text on one line, truncated."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"


def _duration(seconds: float) -> str:
    """Format seconds, with hours only if there are any.

    Examples:
        >>> _duration(75.0), _duration(7325.0)
        ('1:15', '2:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

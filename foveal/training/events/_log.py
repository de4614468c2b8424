"""The log of a run: one JSON object for each event, one on each line of `log.jsonl`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ..checkpoints._whole import replacing
from ._events import Event, Failed, Finished, Started


class LogWriter:
    """Appends events to a file.

    A run that goes on from a checkpoint does some steps again: when it starts, lines about steps
    after the checkpoint are taken out, so that the log of a run that was killed and resumed reads as
    that of one that was not.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def __call__(self, event: Event) -> None:
        """Write one event."""
        if isinstance(event, Started):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._cut(event.step)
            # A line at a time: what a run has said before it is killed is in the file.
            self._file = self._path.open("a", buffering=1, encoding="utf-8")
        assert self._file is not None, "the first event of a run is Started"
        line = {"event": event_name(event), **vars(event)}
        try:
            self._file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
        finally:
            if isinstance(event, Finished | Failed):
                self._close(self._file)

    def _close(self, file: IO[str]) -> None:
        """Close the file, even if its last line finds no room on the disk."""
        try:
            file.close()
        except OSError:
            file.close()  # without what could not be written
            raise

    def _cut(self, step: int) -> None:
        """Keep what was said up to a step, line by line: the log of a long run is long. The start
        itself is said again.
        """
        if not self._path.exists():
            return
        with replacing(self._path) as file:
            for line in read_log(self._path) if step else ():
                if line["step"] <= step:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log. A last line that a killed run has left unfinished is passed over."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def event_name(event: Event) -> str:
    """The kind of an event as the log names it.

    >>> from foveal.training import Warned
    >>> event_name(Warned(step=1, text=""))
    'warned'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()

"""The log of a run: one JSON object per event and line in `log.jsonl`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ..checkpoints._whole import replacing
from ._events import Event, Failed, Finished, Started


class LogWriter:
    """Appends events to a file.

    A resumed run repeats the steps after its checkpoint. When it starts, the writer removes the lines about these
    steps, and the log then reads like the log of an uninterrupted run.

    Args:
        path: File of the log, with one JSON object on each line. Its folder is created if necessary.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def __call__(self, event: Event) -> None:
        """Write one event."""
        if isinstance(event, Started):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._cut(event.step)
            # Line buffering: the file contains all events even if the run is killed.
            self._file = self._path.open("a", buffering=1, encoding="utf-8")
        assert self._file is not None, "the first event of a run is Started"
        line = {"event": event_name(event), **vars(event)}
        try:
            self._file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
        finally:
            if isinstance(event, Finished | Failed):
                self._close(self._file)

    def _close(self, file: IO[str]) -> None:
        """Close the file, even if its last line does not fit on the disk."""
        try:
            file.close()
        except OSError:
            file.close()  # drops the unwritten rest
            raise

    def _cut(self, step: int) -> None:
        """Keep the events up to a step, one line at a time, because the log of a long run may be large."""
        if not self._path.exists():
            return
        with replacing(self._path) as file:
            for line in read_log(self._path) if step else ():
                if line["step"] <= step:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines of a log. An incomplete last line, left by a killed run, is skipped.

    Args:
        path: File of the log.

    Yields:
        Each event as JSON values, with its name as `event`.
    """
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def event_name(event: Event) -> str:
    """Return the name of an event in the log.

    Args:
        event: Event of a run.

    Returns:
        The name of its class in snake case.

    Examples:
        >>> from foveal.training import Warned
        >>> event_name(Warned(step=1, text=""))
        'warned'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()

"""How much a command says: `--quiet` leaves out everything but results and errors, `--verbose` adds details.

`main` sets the level once, before the command runs; the consoles of all commands are made here.
"""

from contextvars import ContextVar
from enum import IntEnum

from rich.console import Console


class Level(IntEnum):
    """How much a command says."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


LEVEL: ContextVar[Level] = ContextVar("level", default=Level.NORMAL)


def is_quiet() -> bool:
    """Whether only results and errors are wanted."""
    return LEVEL.get() is Level.QUIET


def is_verbose() -> bool:
    """Whether details are wanted, such as the traceback of an error."""
    return LEVEL.get() is Level.VERBOSE


def explaining(*, stderr: bool = False, silent: bool = False) -> Console:
    """A console for everything that is no result: reasons, progress and notes. `--quiet` turns it off.

    Args:
        stderr: write to the standard error.
        silent: say nothing at any level, as the second process of a run does.
    """
    return Console(highlight=False, stderr=stderr, quiet=silent or is_quiet())


def note(text: str) -> None:
    """Write a note of one line to the standard error."""
    explaining(stderr=True).print(f"note: {text}", style="yellow", markup=False, soft_wrap=True)

"""Verbosity of the commands: `--quiet` keeps only results and errors, `--verbose` adds details.

`main` sets the level once, before the command runs; this module creates the consoles of all commands.
"""

from contextvars import ContextVar
from enum import IntEnum

from rich.console import Console


class Level(IntEnum):
    """The verbosity of a command."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


LEVEL: ContextVar[Level] = ContextVar("level", default=Level.NORMAL)


def is_quiet() -> bool:
    """Return whether only results and errors are wanted."""
    return LEVEL.get() is Level.QUIET


def is_verbose() -> bool:
    """Return whether details are wanted, such as the traceback of an error."""
    return LEVEL.get() is Level.VERBOSE


def explaining(*, stderr: bool = False, silent: bool = False) -> Console:
    """Return a console for reasons, progress and notes, which are not results. `--quiet` turns it off.

    Args:
        stderr: Write to the standard error.
        silent: Print nothing at any level, like the second process of a run.

    Returns:
        A console without syntax highlighting.
    """
    return Console(highlight=False, stderr=stderr, quiet=silent or is_quiet())


def explain_engine(chosen: object, name: str = "") -> None:
    """Write the engine of a model, and the reason for it, to the standard error."""
    explaining(stderr=True).print(f"{name}{chosen}", markup=False, soft_wrap=True)


def note(text: str) -> None:
    """Write a note of one line to the standard error."""
    explaining(stderr=True).print(f"note: {text}", style="yellow", markup=False, soft_wrap=True)

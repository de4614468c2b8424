"""Signs that a command is at work: bars and moving signs on a terminal, a line of text elsewhere.

A bar for a known number of answers goes to the standard error: answers go to the output.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..training import Event, Listener
from ._speech import is_quiet as is_quiet_wanted

_PATIENCE = 2.0  # seconds


def answering_bar(
    total: int | None, *, is_quiet: bool = False
) -> AbstractContextManager[Callable[[int], None]]:
    """A function to be told how many more answers there are; nothing is drawn off a terminal."""
    return counting_bar("answering", total, is_quiet=is_quiet)


@contextmanager
def counting_bar(
    text: str, total: int | None, *, is_quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """A function to be told how much more has been done."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=is_quiet or is_quiet_wanted() or not console.is_terminal,
    ) as progress:
        bar = progress.add_task(text, total=total)
        yield lambda number: progress.advance(bar, number)


@contextmanager
def working(console: Console, text: str) -> Iterator[None]:
    """Show what is being done: on a terminal at once, elsewhere in a line if it takes longer than two seconds."""
    if console.is_terminal:
        with console.status(text):
            yield
        return
    line = threading.Timer(
        _PATIENCE, lambda: console.print(f"{text} ...", markup=False, soft_wrap=True)
    )
    line.daemon = True
    line.start()
    try:
        yield
    finally:
        line.cancel()


@contextmanager
def waiting(console: Console, text: str) -> Iterator[Listener]:
    """A sign that something is going on, until a run says its first word: the listener that is given
    must hear it before the one that shows the run. Of a large corpus, two minutes can pass.
    """
    with ExitStack() as stack:
        stack.enter_context(working(console, text))

        def first_word(_: Event) -> None:
            stack.close()

        yield first_word

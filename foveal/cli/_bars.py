"""Progress bars for a known number of answers, on the standard error: answers go to the standard output."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ._speech import is_quiet as is_quiet_wanted


def answering_bar(
    total: int | None, *, is_quiet: bool = False
) -> AbstractContextManager[Callable[[int], None]]:
    """Return a function that takes the number of new answers; without a terminal, nothing is rendered."""
    return counting_bar("predicting", total, is_quiet=is_quiet)


@contextmanager
def counting_bar(
    text: str, total: int | None, *, is_quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Return a function that takes the amount of new progress."""
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

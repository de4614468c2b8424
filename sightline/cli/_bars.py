"""A progress bar for a known number of answers, on the standard error: answers go to the output."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def answering_bar(total: int | None, *, is_quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A function to be told how many more answers there are; nothing is drawn off a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=is_quiet or not console.is_terminal,
    ) as progress:
        bar = progress.add_task("answering", total=total)
        yield lambda number: progress.advance(bar, number)

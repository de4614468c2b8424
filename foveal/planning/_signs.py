"""Progress before the first training step: a spinner on a terminal, a line of text elsewhere."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from ..training import Event, Listener

_PATIENCE = 2.0  # seconds


@contextmanager
def working(console: Console, text: str) -> Iterator[None]:
    """Show the current activity: at once on a terminal, elsewhere as a line if it takes longer than two seconds."""
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
    """Show a spinner until a run emits its first event. Register the yielded listener before the listener that
    displays the run. On a large corpus, the first event can take two minutes.
    """
    with ExitStack() as stack:
        stack.enter_context(working(console, text))

        def first_word(_: Event) -> None:
            stack.close()

        yield first_word

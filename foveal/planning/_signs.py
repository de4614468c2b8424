"""Signs of work before the first step: a moving sign on a terminal, a line of text elsewhere."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from ..training import Event, Listener

_PATIENCE = 2.0  # seconds


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

"""Ctrl-C and SIGTERM end a run after the step it is in, as if its time were up."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """Whether somebody has asked for the end. The second time it is a `KeyboardInterrupt`, and the first time
    too while `immediate` lasts.
    """

    def __init__(self) -> None:
        self.asked = self._is_immediate = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Called by Python for a signal."""
        if self.asked or self._is_immediate:
            raise KeyboardInterrupt
        self.asked = True

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """For work that may be cut short anywhere, such as scoring a model that is saved."""
        self._is_immediate = True
        try:
            yield
        finally:
            self._is_immediate = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Listen for the signals while this lasts; only a main thread can, elsewhere nothing changes."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = [signal.signal(number, interrupt) for number in _SIGNALS]
    try:
        yield interrupt
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)

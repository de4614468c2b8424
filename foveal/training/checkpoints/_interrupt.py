"""Ctrl-C and SIGTERM end a run after the current step, as if its time were up."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """Records whether the user has requested the end. A second signal raises `KeyboardInterrupt`, and within
    `immediate` the first one does too.
    """

    def __init__(self) -> None:
        self.asked = self._is_immediate = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal; called by Python."""
        if self.asked or self._is_immediate:
            raise KeyboardInterrupt
        self.asked = True

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Allow an interrupt at any point, for work such as scoring a saved model."""
        self._is_immediate = True
        try:
            yield
        finally:
            self._is_immediate = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Handle the signals within the context. Only the main thread can; in other threads nothing changes."""
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

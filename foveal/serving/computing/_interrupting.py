"""Orders in the process that computes: one after the other, and a quick one between the steps of a long one.

    server:  order by the pipe `orders` ------------------->  computes for seconds ...
             quick order by the pipe `urgent`, and a signal ->    suspends, computes, answers, goes on
             Cancel by the pipe `urgent`, and a signal ------>    gives up

Python runs the handler of a signal in the main thread between two of its instructions, that is between two
operations of the model. The handler computes the quick order there and returns, and the long order goes on
from where it was: nothing is computed twice, and the two never take turns. Models keep no state between calls,
so that the results are the same to the last bit.
"""

import signal
import time
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias, final

import torch

from .._pace import Timed
from ._orders import Cancel, Failed, Model, Order, failed

INTERRUPT = signal.SIGUSR1
Models: TypeAlias = dict[int, Model]


class _CancelledError(BaseException):
    """Ends the order under way; no `except Exception` on the way takes it for a fault."""


@final
class Carrier:
    """Carries out what comes through two pipes.

    Args:
        orders: for orders that may be interrupted.
        urgent: for orders that may interrupt, and for `Cancel`.
        models: by number.
    """

    def __init__(
        self, orders: "Connection[Any, Any]", urgent: "Connection[Any, Any]", models: Models
    ) -> None:
        self._orders, self._urgent, self._models = orders, urgent, models
        self._current: int | None = None  # the order that may be interrupted now
        self._is_interrupted = False
        self._urgent_seconds = 0.0  # of the processor, for all urgent orders so far

    def run(self) -> None:
        """Carry out orders until the other ends of the pipes are closed."""
        signal.signal(INTERRUPT, self._interrupt)
        while True:
            wait([self._orders, self._urgent])
            self._serve_urgent()
            if self._orders.poll():
                self._orders.send(self._carried_out(self._orders.recv()))

    def _carried_out(self, order: Order) -> Timed:
        try:
            self._current = order.number
            try:
                self._interrupt()  # for what came before this order could be interrupted
                return self._computed(order)
            finally:
                self._current = None
        except _CancelledError:
            self._current = None
            return Timed(Failed("cancelled", is_told=False), 0.0)

    def _computed(self, order: Order) -> Timed:
        """The answer, and the processor time of this order without those that interrupted it."""
        began = time.thread_time() - self._urgent_seconds
        answer = self._answer(order)
        return Timed(answer, time.thread_time() - self._urgent_seconds - began)

    def _answer(self, order: Order) -> Any:
        for number in order.forgotten:
            self._models.pop(number, None)
        # An order that is cancelled may leave, and one that interrupts may find, another mode.
        with torch.inference_mode(False), torch.enable_grad():
            try:
                return order.order.carried_out(self._models[order.order.number])
            except (
                Exception
            ) as error:  # whatever it is, the process goes on, and whoever asked is told
                return failed(error)

    def _interrupt(self, *_: object) -> None:
        """The handler of the signal. While it runs, the signal is blocked and thus kept for afterwards."""
        if self._current is None or self._is_interrupted:
            return
        self._is_interrupted = True
        signal.pthread_sigmask(signal.SIG_BLOCK, {INTERRUPT})
        try:
            is_cancelled = self._serve_urgent()
        finally:
            self._is_interrupted = False
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {INTERRUPT})
        if is_cancelled:
            raise _CancelledError

    def _serve_urgent(self) -> bool:
        """Carry out what is in the pipe; return whether the order under way is to be cancelled."""
        is_cancelled = False
        while self._urgent.poll():
            message: Order | Cancel = self._urgent.recv()
            if isinstance(message, Cancel):
                is_cancelled |= message.number == self._current
            else:
                answer = self._computed(message)
                self._urgent_seconds += answer.seconds
                self._urgent.send(answer)
        return is_cancelled

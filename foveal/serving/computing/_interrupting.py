"""Orders in the computing process: sequential, with quick orders between the steps of a long one.

    server:  order by the pipe `orders` ------------------->  computes for seconds ...
             quick order by the pipe `urgent`, and a signal ->    suspends, computes, answers, resumes
             Cancel by the pipe `urgent`, and a signal ------>    gives up

Python runs a signal handler in the main thread between two of its instructions, that is between two
operations of the model. The handler computes the quick order there and returns, and the long order resumes:
nothing is computed twice, and the two never alternate. Models keep no state between calls, so the results are
bit-identical.
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
    """Ends the running order; no `except Exception` on the way catches it."""


@final
class Carrier:
    """Carries out the orders of two pipes.

    Args:
        orders: The pipe for orders that may be interrupted.
        urgent: The pipe for orders that may interrupt, and for `Cancel`.
        models: The models by number.
    """

    def __init__(
        self, orders: "Connection[Any, Any]", urgent: "Connection[Any, Any]", models: Models
    ) -> None:
        self._orders, self._urgent, self._models = orders, urgent, models
        self._current: int | None = None  # the order that may be interrupted
        self._is_interrupted = False
        self._urgent_seconds = 0.0  # processor time of all urgent orders so far

    def run(self) -> None:
        """Carry out orders until the other ends of the pipes close."""
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
                self._interrupt()  # for urgent messages that came before this order could be interrupted
                return self._computed(order)
            finally:
                self._current = None
        except _CancelledError:
            self._current = None
            return Timed(Failed("cancelled", is_told=False), 0.0)

    def _computed(self, order: Order) -> Timed:
        """Return the answer, and the processor time of this order without its interruptions."""
        began = time.thread_time() - self._urgent_seconds
        answer = self._answer(order)
        return Timed(answer, time.thread_time() - self._urgent_seconds - began)

    def _answer(self, order: Order) -> Any:
        for number in order.forgotten:
            self._models.pop(number, None)
        # A cancelled order may leave the model in another mode, and an interrupting order may find it in one.
        with torch.inference_mode(False), torch.enable_grad():
            try:
                return order.order.carried_out(self._models[order.order.number])
            except (
                Exception
            ) as error:  # any error: the process continues, and the client gets the error
                return failed(error)

    def _interrupt(self, *_: object) -> None:
        """Handle the signal. The signal is blocked during the handler, and delivered afterwards."""
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
        """Carry out the messages in the pipe; return whether to cancel the running order."""
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

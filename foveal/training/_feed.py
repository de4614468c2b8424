"""The batches of the steps, on the device of the model.

On a GPU, a step returns as soon as its kernels are queued. `prepare` then reads the batches of the next step and queues
their copies, so the GPU does not wait while the host pads a batch or reads results. On the CPU there is nothing to
overlap, and every batch is read when it is needed.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple

import torch

from ..data._batches import move
from ..data.streams._stream import AbstractStream


class Fed(NamedTuple):
    """The batches of one step."""

    batches: Sequence[Any]  # on the device
    read: Sequence[Any]  # the same on the CPU, where nobody waits for a GPU to read a value
    epochs: Sequence[int]  # the epoch of the stream after each batch
    wait: float  # seconds spent on reading


class Feed:
    """Reads batches from the stream of a run.

    Args:
        train: The stream.
        device: The device of the model.
    """

    def __init__(self, train: AbstractStream[Any], device: torch.device) -> None:
        self._train, self._device = train, device
        self._next: Fed | None = None  # read ahead
        self._state: dict[str, Any] = {}  # of the stream, before it was read ahead

    def take(self, stream: Iterator[Any], number: int) -> Fed:
        """Return the next batches.

        Args:
            stream: The batches of the run.
            number: The number of batches of a step.

        Returns:
            The batches on the device.
        """
        taken, self._next = self._next, None
        return self._read(stream, number) if taken is None else taken

    def prepare(self, stream: Iterator[Any], number: int) -> None:
        """Read the batches of the next step while a GPU computes this one."""
        if self._device.type != "cpu":
            self._state = self._train.state()
            self._next = self._read(stream, number)

    def state(self) -> dict[str, Any]:
        """Return the state of the stream after the batches that were taken."""
        return self._train.state() if self._next is None else self._state

    def _read(self, stream: Iterator[Any], number: int) -> Fed:
        read, epochs, began = [], [], time.perf_counter()
        for _ in range(number):
            read.append(next(stream))
            epochs.append(self._train.epoch)
        batches = read if self._device.type == "cpu" else [self._moved(batch) for batch in read]
        return Fed(batches, read, epochs, time.perf_counter() - began)

    def _moved(self, batch: Any) -> Any:
        """Return a batch on the device; a task from outside this package moves its own kind of batch in `loss`."""
        if is_dataclass(batch) and not isinstance(batch, type):
            return move(batch, self._device)
        return batch

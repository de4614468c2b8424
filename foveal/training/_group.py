"""The group of processes that train one model: a single process, or the processes of torchrun or another launcher.

All processes run the same loop on their part of each batch. Only process 0 validates, writes files and sends events.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from ..errors import DeviceError

# The time that processes wait while the first one scores. If a process dies, its connections close, and the other
# processes notice at once.
_TIMEOUT = timedelta(hours=12)
_CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Group:
    """This process within its group. With a size of 1, every method returns its input."""

    rank: int
    size: int

    @property
    def is_first(self) -> bool:
        """True if this process validates, writes files and sends events."""
        return self.rank == 0

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor, in place, by its sum over the processes; the result is bit-identical in each."""
        if self.size > 1:
            dist.all_reduce(tensor)

    def agree(self, numbers: Sequence[float]) -> list[float]:
        """Return the numbers of process 0 in every process. Every process passes the same number of values."""
        if self.size == 1:
            return list(numbers)
        shared = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(shared, src=0)
        return shared.tolist()

    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite tensors, in place, with the tensors of process 0."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)  # shares memory, without a graph


@contextmanager
def process_group(device: torch.device = _CPU) -> Iterator[Group]:
    """Join the group in which this process was launched.

    Under torchrun, the group is created here (gloo, and nccl for tensors on GPUs) and destroyed at the end. A group that
    a launcher has already created is used unchanged. Without a launcher, the group is only this process.

    Args:
        device: The device of this process.

    Yields:
        The group, with the rank of this process.

    Raises:
        DeviceError: Several processes are to train on mps, which has no communication between processes.

    Examples:
        >>> with process_group() as group:
        ...     group.rank, group.size
        (0, 1)
    """
    is_launched = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if device.type == "cuda":
        torch.cuda.set_device(device)  # nccl uses the current device
    if is_launched and device.type == "mps":
        raise DeviceError(
            "device: several processes can train on cpu or cuda, got mps. Start one process, or use "
            "--device cpu."
        )
    if dist.is_available() and dist.is_initialized():
        yield Group(dist.get_rank(), dist.get_world_size())
    elif is_launched:
        dist.init_process_group(backend_for(device.type), timeout=_TIMEOUT)
        try:
            yield Group(dist.get_rank(), dist.get_world_size())
        finally:
            dist.destroy_process_group()
    else:
        yield Group(0, 1)


def backend_for(kind: str) -> str:
    """Return the backend of a group whose models are on this kind of device, such as cuda. The decisions of the training
    loop are numbers on the CPU on every device, so a group on GPUs has two backends.

    Args:
        kind: The type of the device.

    Returns:
        The backend, for `init_process_group`.

    Examples:
        >>> backend_for("cuda"), backend_for("cpu")
        ('cpu:gloo,cuda:nccl', 'gloo')
    """
    return "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo"

"""The processes that train one model together: one, or those of torchrun or another launcher.

All of them run the same loop on their part of each batch; process 0 alone validates, writes and
speaks.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

# How long processes wait while the first one scores. One that dies closes its connections, which the
# others notice at once.
_TIMEOUT = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Group:
    """This process among the others. With a size of 1 every method gives back what it is given."""

    rank: int
    size: int

    @property
    def is_first(self) -> bool:
        """Whether this process validates, writes and speaks."""
        return self.rank == 0

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor, in place, by its sum over the processes; the same bits in each."""
        if self.size > 1:
            dist.all_reduce(tensor)

    def agree(self, numbers: Sequence[float]) -> list[float]:
        """The numbers of process 0, in every process; each gives as many."""
        if self.size == 1:
            return list(numbers)
        shared = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(shared, src=0)
        return shared.tolist()

    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite tensors, in place, with those of process 0."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)  # the same memory, without a graph


@contextmanager
def process_group() -> Iterator[Group]:
    """The group that this process was launched in.

    Under torchrun it is made here (gloo) and left at the end; one that a launcher has made already
    is used as it is; without a launcher the group is this process alone.

    >>> with process_group() as group:
    ...     group.rank, group.size
    (0, 1)
    """
    if dist.is_available() and dist.is_initialized():
        yield Group(dist.get_rank(), dist.get_world_size())
    elif int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo", timeout=_TIMEOUT)
        try:
            yield Group(dist.get_rank(), dist.get_world_size())
        finally:
            dist.destroy_process_group()
    else:
        yield Group(0, 1)

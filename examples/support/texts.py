"""Plain texts from the data folder, and the updates of a training loop that an example spells out."""

import gzip
import zipfile

import torch
from torch import Tensor, nn

from . import find


def read_lines(name: str, member: str | None = None, *, cut: int | None) -> list[str]:
    """Read a text below the data folder, or end the program if it is not there.

    Args:
        name: a file packed by gzip, or an archive packed by zip.
        member: which file of the archive.
        cut: so many lines; None for all.
    """
    path = find(name)
    if member is None:
        return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()[:cut]
    with zipfile.ZipFile(path) as archive:
        return archive.read(member).decode("utf-8").splitlines()[:cut]


class Descent:
    """Adam with a learning rate that rises and falls once, and gradients of bounded size."""

    def __init__(self, model: nn.Module, *, learning_rate: float, num_steps: int) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, learning_rate, total_steps=num_steps
        )

    def step(self, loss: Tensor) -> float:
        """Make one optimizer step, and return the loss."""
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()

"""Plain texts from the data folder, and the optimizer steps of examples with an explicit training loop."""

import gzip
import zipfile

import torch
from torch import Tensor, nn

from . import find


def read_lines(name: str, member: str | None = None, *, cut: int | None) -> list[str]:
    """Read a text below the data folder, or exit if it is missing.

    Args:
        name: a gzip file or a zip archive.
        member: the file in the archive.
        cut: the number of lines; None for all.
    """
    path = find(name)
    if member is None:
        return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()[:cut]
    with zipfile.ZipFile(path) as archive:
        return archive.read(member).decode("utf-8").splitlines()[:cut]


class Descent:
    """Adam with a one-cycle learning rate and gradient clipping."""

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

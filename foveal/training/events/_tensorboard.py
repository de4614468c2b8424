"""Event files for TensorBoard. Needs `foveal[tensorboard]`.

tensorboard --logdir runs
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from ...extras import require
from ._events import Evaluated, Event, Failed, Finished, Probed, Started, StepDone


class TensorBoardWriter:
    """Writes loss, gradient norm, learning rate, metrics, measurements of probes and samples to a folder.

    A resumed run hides the steps that it repeats (`purge_step`).

    Args:
        folder: Folder of the TensorBoard files.

    Raises:
        MissingPackageError: The package tensorboard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._summary_writer = _summary_writer()
        self._folder = folder
        self._writer: Any = None

    def __call__(self, event: Event) -> None:
        """Write one event."""
        match event:
            case Started():
                self._writer = self._summary_writer(str(self._folder), purge_step=event.step + 1)
            case StepDone():
                self._writer.add_scalar("training/loss", event.loss, event.step)
                self._writer.add_scalar("training/gradient_norm", event.norm, event.step)
                self._writer.add_scalar("training/learning_rate", event.rate, event.step)
            case Evaluated():
                for name, value in event.metrics.items():
                    self._writer.add_scalar(f"validation/{name}", value, event.step)
                rows = "".join(
                    f"| {s.source} | {s.expected} | {s.output} |\n" for s in event.samples
                )
                table = f"| source | expected | output |\n|---|---|---|\n{rows}"
                self._writer.add_text("validation/samples", table, event.step)
            case Probed():
                for name, value in event.readings.items():
                    if not isinstance(value, list):
                        self._writer.add_scalar(f"probe/{name}", value, event.step)
            case Finished() | Failed() if self._writer is not None:
                self._writer.close()
            case _:
                pass


def _summary_writer() -> Any:
    require("tensorboard", "tensorboard", needed_by="TensorBoardWriter")
    return import_module("torch.utils.tensorboard").SummaryWriter

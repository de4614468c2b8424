"""The one training loop in workers that Ray Train starts, and starts again when one of them or its node dies.

Nothing of the loop is other than under torchrun: workers find a process group made for them, share gradients
in it, and the first writes checkpoints into the folder of the run. After a failure all are started again and go
on from the last of these, so that the folder must be one that every node sees.
"""

import os
from pathlib import Path
from typing import Any

from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
from ray.train.torch import TorchConfig, TorchTrainer
from rich.console import Console

from ...errors import FovealError
from ...inspection import vital_signs
from ...planning._choices import load_plan
from ...specs._files import specs_in
from ...training import Display, process_group
from ...training.checkpoints._lock import Lock

FOLDER = "ray"  # below the folder of a run: what Ray writes about itself
MOST_FAILURES = 20  # in a row or not: what fails so often will fail again


class WorkersError(FovealError, RuntimeError):
    """Workers failed, and not because one of them was lost."""


def train_with_workers(out: Path, workers: int, *, specs: Path | None = None) -> None:
    """Train what is planned in a folder, or go on with it, in so many processes of one core each.

    Args:
        out: the folder of the run.
        workers: the number of processes.
        specs: a Python file with the parts of the run that are not from foveal, which every worker runs.
    """
    folder = out.resolve()
    trainer = TorchTrainer(
        _loop,
        train_loop_config={"out": str(folder), "working": str(Path.cwd()), "specs": specs},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
        run_config=RunConfig(
            name=FOLDER,
            storage_path=str(folder),
            failure_config=FailureConfig(max_failures=MOST_FAILURES),
        ),
    )
    try:
        trainer.fit()
    except TrainingFailedError as error:
        raise WorkersError(
            f"{folder}: the workers failed: {_first_line(error)}. "
            f"Start it again: it goes on from the last checkpoint."
        ) from None


def _loop(config: dict[str, Any]) -> None:
    """In a worker."""
    os.chdir(config["working"])  # files may be named from where the command was called
    out = Path(config["out"])
    with process_group() as group:
        console = Console(highlight=False, quiet=not group.is_first)
        # The process that began the run holds the lock: a worker that is lost may take long to die with one.
        load_plan(out, also=specs_in(config["specs"])).run.fit(
            out, listeners=(Display(console),), probes=(vital_signs,), lock=Lock(out)
        )


def _first_line(error: TrainingFailedError) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__

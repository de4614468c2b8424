"""Distributed training in workers that Ray Train starts, and restarts when a worker or its node dies.

The training loop is the same as under torchrun: workers find an initialized process group and share gradients
in it, and the first worker writes checkpoints into the folder of the run. After a failure, all workers restart and
resume from the last checkpoint, so every node must see the folder.
"""

import os
from pathlib import Path
from typing import Any

from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
from ray.train.torch import TorchConfig, TorchTrainer
from rich.console import Console

from ...devices import resolve_device
from ...errors import FovealError
from ...inspection import vital_signs
from ...planning._choices import load_plan
from ...specs._files import specs_in
from ...training import Display, process_group
from ...training._group import backend_for
from ...training.checkpoints._lock import Lock
from ._gpus import own_gpus

FOLDER = "ray"  # Ray's own files, below the folder of a run
MOST_FAILURES = 20  # in total: a run that fails more often will fail again


class WorkersError(FovealError, RuntimeError):
    """Raised if workers fail for a reason other than a lost worker."""


def train_with_workers(
    out: Path, workers: int, *, specs: Path | None = None, device: str = "cpu"
) -> None:
    """Train the planned run in a folder, or resume it, with this many processes of one core each.

    Args:
        out: The folder of the run.
        workers: The number of processes.
        specs: A Python file with the parts of the run that are not from foveal, which every worker runs.
        device: The device of the workers. Each has its own GPU, if it is cuda, or auto in a cluster with GPUs.

    Raises:
        DeviceError: The cluster has fewer GPUs than workers.
        WorkersError: The workers failed; the same call resumes from the last checkpoint.
    """
    folder, has_gpus = out.resolve(), own_gpus(device, workers)
    trainer = TorchTrainer(
        _loop,
        train_loop_config={
            "out": str(folder),
            "working": str(Path.cwd()),
            "specs": specs,
            "device": "cuda" if has_gpus else "cpu",
        },
        torch_config=TorchConfig(backend=backend_for("cuda" if has_gpus else "cpu")),
        scaling_config=ScalingConfig(
            num_workers=workers, use_gpu=has_gpus, resources_per_worker={"CPU": 1}
        ),
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
            f"{folder}: the workers failed: {_first_line(error)}. Run the same command again to "
            f"resume from the last checkpoint."
        ) from None


def _loop(config: dict[str, Any]) -> None:
    """Run the training loop in a worker."""
    os.chdir(config["working"])  # relative paths refer to the command's working folder
    out = Path(config["out"])
    device = resolve_device(config["device"])
    with process_group(device) as group:
        console = Console(highlight=False, quiet=not group.is_first)
        # The process that began the run holds the lock: a lost worker with the lock may take long to die.
        load_plan(out, also=specs_in(config["specs"])).run.fit(
            out, listeners=(Display(console),), probes=(vital_signs,), lock=Lock(out), device=device
        )


def _first_line(error: TrainingFailedError) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__

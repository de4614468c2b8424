"""Train a task on a stream of batches and save it as a bundle."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..bundles import save_bundle
from ..data import Example
from ..data.streams._stream import AbstractStream
from ..devices import random_state_restored
from ..metrics._intervals import Metric
from ..tasks import AbstractTask, Evaluation
from ._group import Group, process_group
from ._loop import CHECKPOINTS, Loop
from ._outputs import LOG, write_outputs
from ._scoring import Scorer
from ._spec import TrainingSpec, check_training
from ._threads import ThreadSetting, threads_restored
from .checkpoints._checkpoint import clear_checkpoints
from .checkpoints._interrupt import interruptible
from .checkpoints._lock import Lock, locked
from .events._events import Finished, Listener, StopReason
from .events._log import LogWriter
from .events._probe import Probe


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a run. The task's model has the weights of `best_step`."""

    folder: Path
    reason: StopReason
    step: int
    best_step: int
    metrics: Mapping[str, Metric]  # on the whole validation set; only in process 0
    test: Mapping[str, Metric]  # on the test set; only in process 0
    seconds: float
    share: float  # fraction of the time spent on validation
    threads: int = 1  # number of threads that torch used
    device: str = "cpu"  # the device of the model
    is_scored: bool = True  # False if scoring was interrupted; the model is saved in either case


def fit(
    task: AbstractTask[Any],
    train: AbstractStream[Any],
    dev: Sequence[Example],
    spec: TrainingSpec,
    out: Path | str,
    *,
    test: Sequence[Example] = (),
    num_examples: int | None = None,
    listeners: Sequence[Listener] = (),
    probes: Sequence[Probe] = (),
    resume: bool = True,
    lock: Lock | None = None,
    measure_threads: bool = False,
) -> Outcome:
    """Train a task on the device of its model, and save it with its log, scores, samples and curves.

    To resume a run that was killed, make the same call again. Several processes, each with its part of the stream,
    train one model (see `process_group`).

    Args:
        task: The task to train; its model is changed in place.
        train: The batches of this process, from `task.batches`.
        dev: Examples that are decoded for validation. Without them, there is no early stopping, and the last weights
            are kept.
        spec: The settings of training.
        out: The folder of the run.
        test: Examples on which the finished model is scored once.
        num_examples: The number of training examples, for a corpus that does not fit into memory: its stream does not
            know the number, and a schedule by epochs would not advance during the first epoch.
        listeners: Functions that get every event, in process 0.
        probes: Functions that measure the model from time to time, in process 0, in at most a fiftieth of the time.
            Each measurement is sent as an event.
        resume: Whether to resume from the last checkpoint in the folder, if there is one; False deletes the checkpoints
            and starts again.
        lock: The lock on the folder, if the caller holds it (see `locked`). By default, process 0 holds the lock during
            the call, so two runs never write to one folder.
        measure_threads: Whether to time the first step with one thread and with all threads, and use the faster number,
            unless the spec sets one. Results are reproducible only with the same number of threads.

    Returns:
        The reason for the end of training, the best step, the scores and the time.

    Raises:
        SpecError: The settings do not fit each other, or the folder cannot be written to.
        CheckpointError: The checkpoints are damaged or from another run, or another process is training in the folder.
        NonFiniteError: The loss or the gradient is not finite.
    """
    check_training(spec)
    folder = Path(out)
    with ExitStack() as stack:
        group = stack.enter_context(process_group(task.device))
        if group.is_first and lock is None:
            stack.enter_context(locked(folder))
        stack.enter_context(random_state_restored(task.device))
        stack.enter_context(threads_restored())
        interrupt = stack.enter_context(interruptible())
        sets = {"dev": dev, "test": test}
        num_scored = 2 * len(dev) + len(test)  # calibration also decodes the validation set
        loop = Loop(
            task,
            train,
            dev,
            spec,
            folder,
            num_examples=num_examples,
            num_scored=num_scored,
            group=group,
            listeners=(LogWriter(folder / LOG), *listeners),
            interrupt=interrupt,
            # Processes on one machine share its cores and cannot measure at the same time. A GPU needs one thread.
            threads=ThreadSetting(
                spec.threads,
                measures=measure_threads and group.size == 1 and task.device.type == "cpu",
            ),
            probes=probes,
        )
        try:
            reason = loop.run(resume=resume)
            scoring = Scorer(task, spec, folder, loop, interrupt, num_scored)
            return _finish(task, sets, folder, loop, reason, group, scoring)
        except BaseException as error:
            loop.fail(error)
            raise


def delete_checkpoints(out: Path | str) -> None:
    """Delete the checkpoints in the folder of a run, so the next call starts from the beginning."""
    clear_checkpoints(Path(out) / CHECKPOINTS)


def _finish(
    task: AbstractTask[Any],
    sets: Mapping[str, Sequence[Example]],
    folder: Path,
    loop: Loop,
    reason: StopReason,
    group: Group,
    scoring: Scorer,
) -> Outcome:
    """Save the trained model, then score it."""
    at = loop.at
    found: dict[str, Evaluation] = {}
    is_scored = True
    if group.is_first:
        save_bundle(task, folder)  # first: scoring may take long and may be interrupted
        is_scored = scoring.score(sets, found)
        facts = {
            "stopped": reason,
            "step": at.step,
            "best_step": loop.kept_step,
            "seconds": round(at.seconds, 3),
            "share_of_validation": round(at.share, 4),
            "threads": torch.get_num_threads(),
            "device": str(task.device),
        }
        write_outputs(folder, found, facts)
    scores = {name: evaluation.metrics for name, evaluation in found.items()}
    loop.tell(
        Finished(
            step=at.step,
            best_step=loop.kept_step,
            metrics={name: score.value for name, score in scores.get("dev", {}).items()},
            test={name: score.value for name, score in scores.get("test", {}).items()},
            seconds=at.seconds,
            share=at.share,
            warnings=tuple(
                f"{name}: {evaluation.warning}"
                for name, evaluation in found.items()
                if evaluation.warning is not None
            ),
        )
    )
    group.agree([0.0])  # no process leaves before the folder is complete
    return Outcome(
        folder=folder,
        reason=reason,
        step=at.step,
        best_step=loop.kept_step,
        metrics=scores.get("dev", {}),
        test=scores.get("test", {}),
        seconds=at.seconds,
        share=at.share,
        threads=torch.get_num_threads(),
        device=str(task.device),
        is_scored=is_scored,
    )

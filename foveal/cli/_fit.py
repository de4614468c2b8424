"""`foveal fit`: train a model from files, with no configuration or a complete one."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
from rich.console import Console
from tyro.conf import Positional, UseAppendAction, arg

from ..devices import resolve_device
from ..inspection import vital_signs
from ..inspection.doctor._finding import Finding
from ..inspection.doctor._watch import Watch
from ..planning._choices import load_plan
from ..planning._drafting import Asked, draft_run, given_settings, recipe_specs, specs_file
from ..planning._signs import waiting, working
from ..training import Display, Listener, TensorBoardWriter, process_group
from ..training._fit import delete_checkpoints
from ..training.checkpoints._lock import Lock, locked
from ._length import LengthNote
from ._outcome import say_outcome
from ._report import write_report
from ._speech import explaining
from ._threads import use_threads


def command(
    train: Positional[tuple[str, ...]] = (),
    /,
    *,
    dev: tuple[str, ...] = (),
    test: tuple[str, ...] = (),
    out: Path,
    recipe: str | None = None,
    start_from: str | None = None,
    attention: str | None = None,
    settings_given: Annotated[UseAppendAction[tuple[str, ...]], arg(name="set")] = (),
    minutes: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    fresh: bool = False,
    tensorboard: bool = False,
    ray: bool = False,
    workers: int | None = None,
    device: str = "auto",
) -> None:
    """Train a model from files, or resume an interrupted run.

    The command infers the task, the tokenization and the model size from the files, and prints each choice.

    Args:
        train: Training files: tab-separated, CSV, JSON lines, CoNLL-U or plain text; plain, gzip or
            zstd. A quoted pattern can match many files.
        dev: Validation files, to select the best weights. Defaults to a tenth of the training examples.
        test: Test files, for the score at the end.
        out: The folder of the run. After training, it is a model for other commands.
        recipe: A run defined in Python, as file.py:function, instead of training files.
        start_from: Fine-tune: start from the settings and weights of this model. Embeddings are kept for tokens that
            also occur in the new data.
        attention: The attention of the decoder: softmax, sigmoid, segment, path, local, sparsemax, hard, multi_head,
            hierarchical (with encoder=document), latent_hard, latent_monotone or none.
        settings_given: Change one setting, for example encoder.num_layers=2. Repeat the option for more
            settings. `foveal explain-config` lists all settings.
        minutes: Time limit. The learning rate schedule is fitted to it.
        seed: The random seed of initial weights, data order and dropout.
        threads: The number of threads that torch uses. By default, `fit` times one step with one thread and one
            step with OMP_NUM_THREADS threads or one per core, and uses the faster number. Results are
            reproducible only with the same seed and the same number of threads.
        fresh: Start again if the output folder already has a run, instead of resuming it.
        tensorboard: Also write event files for TensorBoard.
        ray: Train in several processes on the Ray cluster at RAY_ADDRESS or, without this variable, on the cores of
            this machine. Lost workers and nodes are replaced. Every node must have access to the output folder.
        workers: The number of processes, with --ray. Defaults to the number of GPUs of this machine if the device is a
            GPU, and otherwise to the number of its cores.
        device: The device to train on: auto, cpu, cuda, cuda:1 or mps. auto uses a GPU if there is one. Under torchrun
            and with --ray, each process uses its own GPU.
    """
    given = given_settings(
        settings_given, attention=attention, minutes=minutes, seed=seed, threads=threads
    )
    used = resolve_device(device)
    with ExitStack() as stack:
        group = stack.enter_context(process_group(used))
        console = explaining(silent=not group.is_first)
        lock, listeners = None, list[Listener]()
        if group.is_first:
            draft = draft_run(console, Asked(train, dev, test, out, recipe, given, start_from))
            lock = stack.enter_context(locked(out))
            draft.check_folder(out, fresh=fresh)
            draft.save(out)
            if draft.epochs is not None and draft.planned.run.training.minutes is not None:
                listeners.append(LengthNote(console, draft.epochs))
            if tensorboard:
                listeners.append(TensorBoardWriter(out / "tensorboard"))
        also = recipe_specs(recipe)
        group.agree([0.0])  # the other processes read the plan of process 0
        is_scored = True
        if ray:
            _train_on_ray(out, workers, specs_file(recipe), device, resume=not fresh)
        else:
            is_scored = _train(console, out, also, lock, listeners, used, resume=not fresh)
        if group.is_first:
            say_outcome(console, out)
            if is_scored:  # a user who interrupted the scoring wants no report either
                _write_report(console, out, also)


def _train(
    console: Console,
    out: Path,
    also: Sequence[type],
    lock: Lock | None,
    listeners: Sequence[Listener],
    device: torch.device,
    *,
    resume: bool,
) -> bool:
    """Train the planned run of a folder, in this process and all processes that were launched with it. Returns
    whether the model was scored too.
    """
    run = load_plan(out, also=also).run
    watch = Watch(partial(_say_alarm, console), run.task, run.training)
    with waiting(console, "building the vocabulary") as first_word:
        outcome = run.fit(
            out,
            listeners=(first_word, Display(console), *listeners, watch),
            probes=(vital_signs,),
            resume=resume,
            lock=lock,
            measure_threads=True,
            device=device,
        )
    use_threads(outcome.threads)  # for the report too
    return outcome.is_scored


def _train_on_ray(
    out: Path, workers: int | None, specs: Path | None, device: str, *, resume: bool
) -> None:
    from ..scale.cluster._joining import ray_cluster  # noqa: PLC0415 - an extra
    from ..scale.cluster._training import train_with_workers  # noqa: PLC0415 - an extra

    if not resume:
        delete_checkpoints(out)  # once, and not again when a worker is lost
    gpus = torch.cuda.device_count() if resolve_device(device).type == "cuda" else 0
    number = workers or gpus or os.cpu_count() or 1
    with ray_cluster(num_cpus=number):
        train_with_workers(out, number, specs=specs, device=device)


def _say_alarm(console: Console, finding: Finding) -> None:
    """Print an alarm of the doctor during a run."""
    console.print(
        f"{finding.name}: {finding.text} Remedy: {finding.remedy}",
        style="red",
        markup=False,
        soft_wrap=True,
    )


def _write_report(console: Console, out: Path, also: Sequence[type]) -> None:
    """Write the report of the run. The model is already saved, and a failed report must not lose it."""
    try:
        with working(console, "writing the report"):
            path = write_report(out, is_quiet=True, also=also)
    except Exception as error:
        console.print(
            f"note: could not write the report: {error}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    else:
        console.print(f"Report: {path}", markup=False, soft_wrap=True)

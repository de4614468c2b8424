"""Options, data files and training shared by the examples."""

import argparse
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import torch
from rich.console import Console

from foveal.data import Example, InMemory
from foveal.datasets import data_file, data_folder
from foveal.errors import DataError
from foveal.tasks import AbstractTask, AbstractTextSpec
from foveal.training import Display, TrainingSpec, fit

DATA = data_folder()

BATCH = 32  # sentences

Task = TypeVar("Task", bound=AbstractTask[Any])


class Options(NamedTuple):
    """The arguments of an example."""

    cut: int | None
    epochs: int
    seed: int


def parse_options(*, epochs: int) -> Options:
    """Read the command line, seed torch, and use one thread: a step is too small for more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cut", type=int, help="use so many sentences of each file; all if absent")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--seed", type=int, default=0)
    options = Options(**vars(parser.parse_args()))
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    return options


def find(name: str) -> Path:
    """Return the path of a file below the data folder; if it is missing, print how to get it and exit."""
    try:
        return data_file(name)
    except DataError as error:
        print(f"skipped: {error}")
        raise SystemExit(0) from None


def train(
    spec: AbstractTextSpec[Task],
    examples: Iterable[Example],
    options: Options,
    *,
    learning_rate: float,
) -> Task:
    """Build the task for its training examples and train it. Progress goes to the standard error."""
    torch.manual_seed(options.seed)
    source = InMemory(tuple(examples))
    task = spec.build_from(source)
    steps = options.epochs * math.ceil(len(source.examples) / BATCH)
    training = TrainingSpec(
        steps=steps,
        learning_rate=learning_rate,
        warmup_steps=steps // 4,
        schedule="cosine",
        clip_norm=5.0,
        seed=options.seed,
    )
    batches = task.batches(source, batch_size=BATCH, seed=options.seed)
    with TemporaryDirectory() as folder:
        fit(task, batches, [], training, folder, listeners=[Display(Console(file=sys.stderr))])
    return task

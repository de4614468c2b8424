"""Small tasks that train in a second, and a program that trains one of them in a separate process.

python -m tests.training.toys OUT --die-at 23            kills itself right after step 23
torchrun ... -m tests.training.toys OUT --rank-dies-at 23     kills rank 1, in the first start only
"""

import argparse
import os
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from foveal.data import BatchStream, Example, InMemory, Seq2SeqBatch
from foveal.data.streams._stream import AbstractStream
from foveal.models import DecoderSpec, LanguageModelSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import LanguageModeling, LanguageModelingSpec, Transduction, TransductionSpec
from foveal.training import (
    Event,
    Outcome,
    StepDone,
    TrainingSpec,
    _outputs,
    fit,
    process_group,
    read_log,
)

BATCH = 16


def reversals(number: int, seed: int = 0) -> tuple[Example, ...]:
    """Return words and their reversals."""
    draw = random.Random(seed)
    words = ("".join(draw.choices("abcdef", k=draw.randint(2, 6))) for _ in range(number))
    return tuple(Example(word, word[::-1]) for word in words)


TRAIN, DEV = reversals(200), reversals(20, seed=1)


def transduction(dropout: float = 0.3) -> Transduction:
    """Build a task with about 6,000 weights, the same in every call."""
    encoder = TextEncoderSpec(embedding_size=8, hidden_size=16, dropout=dropout)
    decoder = DecoderSpec(embedding_size=8, hidden_size=16, dropout=dropout)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TransductionSpec(model=Seq2SeqSpec(encoder=encoder, decoder=decoder)).build_from(
            TRAIN
        )


def language_modeling() -> LanguageModeling:
    """Build a task whose state carries over from batch to batch."""
    spec = LanguageModelingSpec(
        model=LanguageModelSpec(embedding_size=8, hidden_size=16), bptt_length=7
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return spec.build_from(TRAIN)


def batches(
    task: Transduction | LanguageModeling, examples: Sequence[Example] = TRAIN
) -> AbstractStream[Any]:
    return task.batches(InMemory(tuple(examples)), batch_size=BATCH, seed=1)


def train(
    out: Path,
    spec: TrainingSpec,
    *,
    task: Transduction | LanguageModeling | None = None,
    dev: Sequence[Example] = DEV,
    listeners: Sequence[Callable[[Event], None]] = (),
    resume: bool = True,
) -> Outcome:
    """Fit a toy task; the same spec gives the same weights."""
    task = transduction() if task is None else task
    return fit(task, batches(task), dev, spec, out, listeners=listeners, resume=resume)


def losses(out: Path) -> list[float]:
    """Return the loss of every step, in the order of the log, which must contain each step once."""
    steps = [line for line in read_log(out / "log.jsonl") if line["event"] == "step_done"]
    assert [line["step"] for line in steps] == list(range(1, len(steps) + 1))
    return [line["loss"] for line in steps]


def weights_bytes(out: Path) -> bytes:
    """Read the file of the saved weights."""
    return (out / "weights.safetensors").read_bytes()


def _die(number: int) -> Callable[[Event], None]:
    def listener(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return listener


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--die-at", type=int)
    parser.add_argument("--rank-dies-at", type=int)
    given = parser.parse_args()
    torch.set_num_threads(1)
    _outputs.draw_curves = lambda log, out: None  # plots take longer than the run
    spec = TrainingSpec(
        steps=given.steps, learning_rate=5e-3, ema_decay=0.9, checkpoint_seconds=0.0
    )
    listeners = [] if given.die_at is None else [_die(given.die_at)]
    with process_group() as group:
        task = transduction(given.dropout)
        made = 0

        def collate(examples: Any) -> Seq2SeqBatch:
            nonlocal made
            made += 1
            is_first_try = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
            if made == given.rank_dies_at and group.rank == 1 and is_first_try:
                os.kill(os.getpid(), signal.SIGKILL)
            return task.collate(examples)

        stream = BatchStream(
            InMemory(TRAIN),
            task.encode,
            collate,
            batch_size=BATCH,
            seed=1,
            rank=group.rank,
            world_size=group.size,
        )
        fit(task, stream, DEV, spec, given.out, listeners=listeners)


if __name__ == "__main__":
    main()

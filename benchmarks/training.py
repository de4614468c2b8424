"""What does the training loop cost, and how fast does it train?

    python -m benchmarks.training

**Overhead.** A step of the loop (a batch from the stream, schedule, loss, backward, clipping, optimizer,
bookkeeping, log) compared with the bare step (zero_grad, loss, backward, clip, step), in turn, on one
thread: a bidirectional LSTM encoder with 256 units per direction, attention, an LSTM decoder with 256 units,
and 64 words per batch. Both train on the same batch again and again, hence every step is the same work; the
loop still builds its batches.

**Speed.** Runs on the pronunciation of Hungarian and Icelandic words, if the data is available: words and
target tokens per second of training, and the time of validations. All times are CPU time, which depends
less on other load of the machine.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from examples.support import DATA
from foveal.data import Example, InMemory, WhitespaceSpec, tsv
from foveal.datasets._folder import advice
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import Transduction, TransductionSpec
from foveal.training import Evaluated, Event, Run, StepDone, TrainingSpec
from foveal.training._group import Group
from foveal.training._loop import Loop
from foveal.training._threads import ThreadSetting
from foveal.training.checkpoints._interrupt import Interrupt
from foveal.training.events._log import LogWriter

from .results import Results, Row
from .timing import Plan, compare, use_one_thread

OUT = Path("results/training.json")
BATCH = 64
ROUNDS = 100  # a step is long, so each candidate has one step per round
SPEC = TrainingSpec(steps=10**9, batch_size=BATCH, learning_rate=1e-3)
VARIANTS = {
    "loop": SPEC,
    "loop, averaging": replace(SPEC, ema_decay=0.999),
}


MODEL = TransductionSpec(
    target=WhitespaceSpec(),
    model=Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=128, hidden_size=256),
        decoder=DecoderSpec(embedding_size=128, hidden_size=256),
    ),
)
SMALL = replace(
    MODEL,
    encoder=TextEncoderSpec(embedding_size=64, hidden_size=128),
    decoder=DecoderSpec(embedding_size=64, hidden_size=128),
)
# Languages, models, and enough steps for some validations.
CASES = {
    "Hungarian, 8,000 words, 256 units, batch 64": (
        "g2p_sigmorphon2021/medium/hun",
        MODEL,
        TrainingSpec(steps=600, batch_size=64, ema_decay=0.995),
    ),
    "Icelandic, 800 words, 128 units, batch 32": (
        "g2p_sigmorphon2021/low/ice",
        SMALL,
        TrainingSpec(steps=600, batch_size=32, ema_decay=0.99),
    ),
}


def words(number: int) -> tuple[Example, ...]:
    """Return words of 5 to 15 letters and the same number of phones, from an alphabet of 40."""
    draw = Random(0)
    alphabet = [chr(ord("a") + place) for place in range(40)]
    texts = ["".join(draw.choices(alphabet, k=draw.randint(5, 15))) for _ in range(number)]
    return tuple(Example(text, " ".join(reversed(text))) for text in texts)


def pronunciation(examples: Sequence[Example]) -> Transduction:
    """Return a task for these examples, with the same weights every time."""
    torch.manual_seed(0)
    return MODEL.build_from(examples)


def bare_step(examples: Sequence[Example]) -> Callable[[], None]:
    """Return a call that makes only the next step."""
    task = pronunciation(examples)
    parameters = list(task.model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=SPEC.learning_rate, weight_decay=0.0, fused=True)
    batch = next(iter(task.batches(InMemory(tuple(examples)), batch_size=BATCH, seed=1)))
    task.model.train()

    def step() -> None:
        loss = task.loss(batch)
        optimizer.zero_grad(set_to_none=True)
        (loss.total / loss.count).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()

    return step


def loop_step(examples: Sequence[Example], spec: TrainingSpec, folder: Path) -> Callable[[], None]:
    """Return a call that makes the next step of the loop with all its bookkeeping."""
    task = pronunciation(examples)
    stream = task.batches(InMemory(tuple(examples)), batch_size=BATCH, seed=1)
    loop = Loop(
        task,
        stream,
        [],
        spec,
        folder,
        num_examples=None,
        num_scored=0,
        group=Group(0, 1),
        threads=ThreadSetting(None, measures=False),
        listeners=[LogWriter(folder / "log.jsonl")],
        interrupt=Interrupt(),
    )
    loop.begin(resume=False)
    batches = _always_the_first(stream.forever())
    return lambda: loop.advance(batches)


def _always_the_first(batches: Iterator[Any]) -> Iterator[Any]:
    first = next(batches)
    yield first
    for _ in batches:
        yield first


def overhead() -> list[Row]:
    """Measure the time of the loop divided by the time of the bare step."""
    examples = words(4096)
    with tempfile.TemporaryDirectory() as folder:
        candidates = {"bare": bare_step(examples)}
        for name, spec in VARIANTS.items():
            candidates[name] = loop_step(examples, spec, Path(folder) / name)
        timings = compare(candidates, reference="bare", plan=Plan(rounds=ROUNDS, budget=600.0))
    return [
        Row(
            name=f"{name}, a step to the bare one, 256 units, batch {BATCH}",
            value=timing.ratio,
            unit="x bare",
            spread=timing.ratio_spread,
            target=1.05,
            sense="<=",
        )
        for name, timing in timings.items()
        if name != "bare"
    ]


class Stopwatch:
    """A listener that measures the CPU time of training and of validation separately."""

    def __init__(self) -> None:
        self.training = self.validating = 0.0
        self.epochs, self.num_symbols = 0.0, 0
        self._mark = process_time()

    def __call__(self, event: Event) -> None:
        """Add the time since the previous event to training or validation, by type of event."""
        mark, self._mark = self._mark, process_time()
        match event:
            case StepDone():
                self.training += self._mark - mark
                self.epochs = event.epoch
                self.num_symbols += event.tokens
            case Evaluated():
                self.validating += self._mark - mark
            case _:
                pass  # checkpoints, the start and the end


def speed(name: str, language: str, model: TransductionSpec, training: TrainingSpec) -> list[Row]:
    """Measure words and tokens per CPU second, and the time of validations."""
    paths = {part: sorted(DATA.glob(f"{language}_{part}.tsv*")) for part in ("train", "dev")}
    if not all(paths.values()):
        print(f"no data at {DATA / language}: speed is not measured. {advice(DATA / language)}")
        return []
    watch = Stopwatch()
    train = tsv(paths["train"])
    run = Run(task=model, train=train, dev=tsv(paths["dev"]), training=training)
    with tempfile.TemporaryDirectory() as folder:
        run.fit(folder, listeners=[watch], device="cpu")
    num_words = watch.epochs * sum(1 for _ in train)
    return [
        Row(
            name=f"{name}: words trained on",
            value=num_words / watch.training,
            unit="words/s",
        ),
        Row(
            name=f"{name}: target symbols trained on",
            value=watch.num_symbols / watch.training,
            unit="symbols/s",
        ),
        Row(
            name=f"{name}: validation by free decoding to training",
            value=watch.validating / watch.training,
            unit="share",
            target=0.1,
            sense="<=",
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write all figures."""
    del arguments  # the command has no options
    use_one_thread()
    rows = overhead()
    for name, case in CASES.items():
        rows += speed(name, *case)
    results = Results.here("python -m benchmarks.training").with_rows(rows)
    results.save(OUT)
    table = Table("measured", "value", "spread", "target")
    for row in results.rows:
        spread = "" if row.spread is None else f"{row.spread[0]:.3f} to {row.spread[1]:.3f}"
        target = "" if row.target is None else f"{row.sense} {row.target:g}"
        table.add_row(row.name, f"{row.value:.3f} {row.unit}", spread, target)
    Console().print(table)


if __name__ == "__main__":
    main()

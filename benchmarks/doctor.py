"""What does the doctor's probe cost a run?

    python -m benchmarks.doctor

The training loop runs with and without the probe in turn, 25 steps at a time, on one thread: words of 5 to
15 letters, a bidirectional LSTM encoder and an LSTM decoder with attention. All times are CPU time. The
loop spaces the probes by its clock, which here counts the CPU time of the loop's own steps. The spread
is the interquartile range over blocks.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import quantiles
from time import process_time

import torch
from rich.console import Console
from rich.table import Table

from foveal.data import Example, InMemory
from foveal.inspection import vital_signs
from foveal.tasks import TransductionSpec
from foveal.training import Event, LogWriter, TrainingSpec
from foveal.training._group import Group
from foveal.training._loop import Loop
from foveal.training._threads import ThreadSetting
from foveal.training.checkpoints._interrupt import Interrupt
from foveal.training.events._events import Probed
from foveal.training.events._probe import Probe, Probing

from .results import Results, Row
from .timing import use_one_thread
from .training import SMALL, words

OUT = Path("results/doctor.json")
SPEC = TrainingSpec(steps=10**9, batch_size=32, learning_rate=1e-3)
CASES = {"128 units, batch 32": (SMALL, SPEC)}
NUM_STEPS, BLOCK = 1000, 25


def advance(
    spec: TransductionSpec,
    training: TrainingSpec,
    examples: Sequence[Example],
    folder: Path,
    probes: Sequence[Probe],
    clock: Callable[[], float] = process_time,
) -> tuple[Callable[[], None], list[Probed]]:
    """Return a call that makes the next step of a run, and the list of its probe events."""
    torch.manual_seed(0)
    task, told = spec.build_from(examples), list[Probed]()

    def listen(event: Event) -> None:
        if isinstance(event, Probed):
            told.append(event)

    stream = task.batches(InMemory(tuple(examples)), batch_size=training.batch_size, seed=1)
    loop = Loop(
        task,
        stream,
        [],
        training,
        folder,
        num_examples=None,
        num_scored=0,
        group=Group(0, 1),
        threads=ThreadSetting(None, measures=False),
        listeners=[LogWriter(folder / "log.jsonl"), listen],
        interrupt=Interrupt(),
    )
    loop._probing = Probing(probes, clock)
    loop.begin(resume=False)
    batches = stream.forever()
    return lambda: loop.advance(batches), told


class OwnTime:
    """A clock that counts CPU seconds only in the blocks of one run."""

    def __init__(self) -> None:
        self.blocks: list[float] = []
        self._began: float | None = None

    def __call__(self) -> float:
        """Return the seconds so far, including the current block."""
        here = 0.0 if self._began is None else process_time() - self._began
        return sum(self.blocks) + here

    def run(self, step: Callable[[], None]) -> None:
        """Run a block of steps."""
        self._began = process_time()
        for _ in range(BLOCK):
            step()
        self.blocks.append(process_time() - self._began)
        self._began = None


def measure(name: str, spec: TransductionSpec, training: TrainingSpec) -> list[Row]:
    """Measure the fraction of time that probes take, as the loop reports it and by comparison."""
    examples, without, with_probes = words(4096), OwnTime(), OwnTime()
    with tempfile.TemporaryDirectory() as folder:
        plain, _ = advance(spec, training, examples, Path(folder) / "without", ())
        probed, told = advance(
            spec, training, examples, Path(folder) / "with", (vital_signs,), with_probes
        )
        for block in range(NUM_STEPS // BLOCK):
            turn = [(without, plain), (with_probes, probed)]
            for clock, step in turn if block % 2 else reversed(turn):
                clock.run(step)
    spent = sum(event.seconds for event in told)
    ratios = [a / b for a, b in zip(with_probes.blocks, without.blocks, strict=True)]
    low, _, high = quantiles(ratios, n=4)
    per_step = without() / NUM_STEPS
    return [
        Row(
            name=f"{name}: time in probes, of {NUM_STEPS} steps with them",
            value=spent / with_probes(),
            unit="share",
            target=0.03,
            sense="<=",
        ),
        Row(
            name=f"{name}: {NUM_STEPS} steps with probes to as many without",
            value=with_probes() / without(),
            unit="x without",
            spread=(low, high),
            target=1.03,
            sense="<=",
        ),
        Row(name=f"{name}: probes", value=float(len(told)), unit="probes"),
        Row(name=f"{name}: a probe", value=spent / max(1, len(told)) / per_step, unit="steps"),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write all figures."""
    del arguments  # the command has no options
    use_one_thread()
    rows = [row for name, case in CASES.items() for row in measure(name, *case)]
    results = Results.here("python -m benchmarks.doctor").with_rows(rows)
    results.save(OUT)
    table = Table("measured", "value", "target")
    for row in results.rows:
        target = "" if row.target is None else f"{row.sense} {row.target:g}"
        table.add_row(row.name, f"{row.value:.4f} {row.unit}", target)
    Console().print(table)


if __name__ == "__main__":
    main()

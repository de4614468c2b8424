"""Training speed compared with other toolkits, at the same sizes.

    pip install --no-deps -c constraints.txt --group toolkits
    python -m benchmarks.training_peers                    both
    python -m benchmarks.training_peers joeynmt --rounds 5

Our step is a step of the complete loop: a batch from the stream, schedule, loss, backward, clipping,
optimizer, bookkeeping, log. The step of a peer is its bare step on precomputed batches (see
`training_toolkits`). All candidates run in turn in this process, on one thread. In a round, each runs for some
CPU seconds, and its rate is divided by the peer's rate in the same round. Each toolkit makes its own batches:
the peers from sentences in random order, Foveal from sentences of similar length.

**yoyodyne** on the pronunciation of Hungarian words, at the sizes of yoyodyne's test suite (256 units) and at
its defaults (512 units). **JoeyNMT** on Japanese to English: characters to words seen twice, 256 units.
JoeyNMT uses input feeding, which Foveal does not do by default; one row has Foveal with input feeding.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Literal

import torch
from rich.console import Console

from examples.support import DATA
from foveal.data import CharacterSpec, Example, InMemory, WhitespaceSpec, open_source, tsv
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import TransductionSpec
from foveal.training import Failed, LogWriter, TrainingSpec
from foveal.training._group import Group
from foveal.training._loop import Loop
from foveal.training._threads import ThreadSetting
from foveal.training.checkpoints._interrupt import Interrupt

from .results import Results, Row
from .timing import use_one_thread
from .training_toolkits import Done, Sizes, Step, joeynmt, yoyodyne

OUT = Path("results/training_peers.json")
WORDS = "g2p_sigmorphon2021/medium/hun_train.tsv.gz"
SENTENCES = "enja_tanaka50k/train.{}.gz"
SECONDS = 3.0  # CPU seconds of a turn
WARM = 3  # steps
YOYODYNE = {
    "256 units, batch 100": Sizes(embedding=64, hidden=256, dropout=0.2, batch=100),
    "512 units, batch 32": Sizes(embedding=128, hidden=512, dropout=0.2, batch=32),
}
JOEYNMT = Sizes(embedding=256, hidden=256, dropout=0.3, batch=64)
TARGETS = {"yoyodyne": 6.0, "joeynmt": 3.0}

Unit = Literal["examples", "symbols"]


def model_of(sizes: Sizes, *, feeding: bool = False, characters: bool = True) -> TransductionSpec:
    """Return our model at these sizes."""
    each = {
        "embedding_size": sizes.embedding,
        "hidden_size": sizes.hidden,
        "dropout": sizes.dropout,
    }
    return TransductionSpec(
        source=CharacterSpec() if characters else CharacterSpec(spaces="drop"),
        target=WhitespaceSpec(),
        min_count=1 if characters else 2,
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(**each), decoder=DecoderSpec(**each, input_feeding=feeding)
        ),
    )


@contextmanager
def ours(
    spec: TransductionSpec, examples: Sequence[Example], batch: int, folder: Path, *, bf16: bool
) -> Iterator[Step]:
    """Return a call that makes a step of the loop on the next batch."""
    torch.manual_seed(0)
    task = spec.build_from(examples)
    stream = task.batches(InMemory(tuple(examples)), batch_size=batch, seed=1)
    loop = Loop(
        task,
        stream,
        [],
        TrainingSpec(steps=10**9, batch_size=batch, learning_rate=1e-3, bf16=bf16),
        folder,
        num_examples=None,
        num_scored=0,
        group=Group(0, 1),
        threads=ThreadSetting(None, measures=False),
        listeners=[LogWriter(folder / "log.jsonl")],
        interrupt=Interrupt(),
    )
    loop.begin(resume=False)
    seen: list[Done] = []
    batches = _noted(stream.forever(), seen)

    def step() -> Done:
        loop.advance(batches)
        return seen.pop()

    try:
        yield step
    finally:
        loop.tell(Failed(step=loop.at.step, text="measured"))  # closes the log


def _noted(batches: Iterator[Any], seen: list[Done]) -> Iterator[Any]:
    for batch in batches:
        seen.append(Done(len(batch.mask), int(batch.mask.sum())))
        yield batch


def rates(steps: Mapping[str, Step], unit: Unit, rounds: int) -> dict[str, list[float]]:
    """Return the examples or tokens per CPU second, one number for each round."""
    for step in steps.values():
        for _ in range(WARM):
            step()
    found: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds):
        for name in list(steps)[:: 1 if number % 2 == 0 else -1]:
            began, seen = process_time(), 0
            while (taken := process_time() - began) < SECONDS:
                done = steps[name]()
                seen += done.examples if unit == "examples" else done.symbols
            found[name].append(seen / taken)
    return found


def rows(
    title: str, peer: str, found: Mapping[str, Sequence[float]], unit: Unit, target: float
) -> Iterator[Row]:
    """Yield the ratio of each of our models to the peer, then all rates."""
    for name, speeds in found.items():
        if name != peer:
            ratios = [own / other for own, other in zip(speeds, found[peer], strict=True)]
            yield Row(
                name=f"{title}: {name} to {peer}",
                value=median(ratios),
                unit=f"x {peer}",
                spread=(min(ratios), max(ratios)),
                target=target if name == "ours" else None,
                sense=">=" if name == "ours" else None,
            )
    for name, speeds in found.items():
        yield Row(
            name=f"{title}: {name}",
            value=median(speeds),
            unit=f"{unit}/s",
            spread=(min(speeds), max(speeds)),
        )


def beside_yoyodyne(rounds: int, folder: Path) -> Iterator[Row]:
    """Compare with yoyodyne on Hungarian words and their phones."""
    examples = list(tsv(DATA / WORDS))
    for title, sizes in YOYODYNE.items():
        spec = model_of(sizes)
        steps = {"yoyodyne": yoyodyne(examples, sizes)}
        with ExitStack() as stack:
            for name, bf16 in (("ours", False), ("ours, bf16", True)):
                own = ours(spec, examples, sizes.batch, folder / f"{title} {name}", bf16=bf16)
                steps[name] = stack.enter_context(own)
            found = rates(steps, "examples", rounds)
        yield from rows(
            f"Hungarian words, {title}", "yoyodyne", found, "examples", TARGETS["yoyodyne"]
        )


def beside_joeynmt(rounds: int, folder: Path) -> Iterator[Row]:
    """Compare with JoeyNMT on Japanese sentences and their translations."""
    files = (DATA / SENTENCES.format(side) for side in ("ja", "en"))
    examples = list(islice(open_source(*files).source, 50_000))
    plain = model_of(JOEYNMT, characters=False)
    decoder = replace(plain.model.decoder, input_feeding=True)
    fed = replace(plain, model=replace(plain.model, decoder=decoder))
    steps = {"joeynmt": joeynmt(examples, JOEYNMT)}
    with ExitStack() as stack:
        for name, spec, bf16 in (
            ("ours", plain, False),
            ("ours, bf16", plain, True),
            ("ours with input feeding", fed, False),
            ("ours with input feeding, bf16", fed, True),
        ):
            own = ours(spec, examples, JOEYNMT.batch, folder / name, bf16=bf16)
            steps[name] = stack.enter_context(own)
        found = rates(steps, "symbols", rounds)
    title = f"Japanese to English, {JOEYNMT.hidden} units, batch {JOEYNMT.batch}"
    yield from rows(title, "joeynmt", found, "symbols", TARGETS["joeynmt"])


PEERS = {"yoyodyne": beside_yoyodyne, "joeynmt": beside_joeynmt}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write all figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_peers")
    parser.add_argument("peers", nargs="*", metavar="peer", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args(arguments)
    if unknown := set(given.peers) - set(PEERS):
        parser.error(f"no peer {sorted(unknown)}; there are {list(PEERS)}")
    use_one_thread()
    chosen = given.peers or list(PEERS)
    results = Results.here("python -m benchmarks.training_peers", packages=chosen)
    results = results.continued_from(OUT)
    console = Console(highlight=False)
    for peer in chosen:
        with tempfile.TemporaryDirectory() as folder:
            for row in PEERS[peer](given.rounds, Path(folder)):
                results = results.with_rows([row])
                console.print(
                    f"{row.name}: {row.value:.3f} {row.unit} {row.spread}", soft_wrap=True
                )
    results.save(OUT)


if __name__ == "__main__":
    main()

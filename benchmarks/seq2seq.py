"""How close to the bare engine does a model train, and how fast does it write?

    python -m benchmarks.seq2seq                      everything, half an hour when nothing else runs
    python -m benchmarks.seq2seq training             the training step compared with the bare engine
    python -m benchmarks.seq2seq --native             structured attention compared with softmax, with the kernels
    python -m benchmarks.seq2seq words --without-peer words per second compared with the plain loop only
    python -m benchmarks.seq2seq beam memory          time of beam search over greedy search; growth of memory

One thread, float32, interleaved in one process (see `timing`). Training uses the C++ kernels only with --native. The parts
`words` and `beam` always use them. Both need `foveal-native`.
"""

import argparse
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from foveal.inference import _native

from . import seq2seq_memory, seq2seq_search, seq2seq_training
from .results import Results, Row
from .seq2seq_yoyodyne import PACKAGE
from .timing import Plan, use_one_thread

OUT = Path("results/seq2seq.json")
PARTS = ("training", "words", "beam", "memory")
ROUNDS = 15


def measure(parts: Sequence[str], rounds: int, *, with_peer: bool) -> Iterator[Row]:
    """Yield the rows of these parts as they are measured."""
    # Every round calls all candidates, so figures can be compared round by round.
    every_round = Plan(rounds=rounds, least_rounds=rounds, block=0.1)
    slow_peer = Plan(rounds=rounds, least_rounds=3, budget=20.0, block=0.1)
    if "training" in parts:
        yield from seq2seq_training.rows(seq2seq_training.Sizes(), every_round)
    if "native" in parts:
        yield from seq2seq_training.native_rows(seq2seq_training.Sizes(), every_round)
    if "words" in parts:
        yield from seq2seq_search.rows(seq2seq_search.Sizes(), slow_peer, with_peer=with_peer)
    if "beam" in parts:
        yield from seq2seq_search.beam_rows(seq2seq_search.Sizes(), every_round)
    if "memory" in parts:
        yield from seq2seq_memory.rows()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the requested measurements, print them and write them to the results file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.seq2seq")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all")
    parser.add_argument(
        "--native", action="store_true", help="with the C++ kernels, and nothing else"
    )
    parser.add_argument("--without-peer", action="store_true", help="leave yoyodyne out")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--fresh", action="store_true", help="drop the rows of earlier runs")
    given = parser.parse_args(arguments)
    parts = given.parts or PARTS
    if given.native:
        parts = ["native"]
    if given.native or {"words", "beam"} & set(parts):
        import_module("foveal_native")  # raises ImportError if it is missing
    _native._IN_USE = given.native
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {sorted(unknown)[0]!r}; there are {', '.join(PARTS)}")
    use_one_thread()
    with_peer = "words" in parts and not given.without_peer
    packages = [PACKAGE] if with_peer else []
    results = Results.here("python -m benchmarks.seq2seq", packages=packages)
    if not given.fresh:
        results = results.continued_from(given.out)
    console = Console()
    table = Table("measured", "value", "spread", "target")
    for row in measure(parts, given.rounds, with_peer=with_peer):
        results = results.with_rows([row])
        results.save(given.out)  # after every row: a later part may fail
        spread = "" if row.spread is None else f"{row.spread[0]:.3g} to {row.spread[1]:.3g}"
        target = "" if row.target is None else f"{row.sense} {row.target:g}"
        console.print(f"{row.name}: {row.value:.3g} {row.unit}")
        table.add_row(row.name, f"{row.value:.3g} {row.unit}", spread, target)
    console.print(table)


if __name__ == "__main__":
    main()

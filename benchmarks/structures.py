"""Speed, accuracy and memory of the distributions, compared with other libraries.

    python -m benchmarks.structures                                     everything, a quarter of an hour when nothing else runs
    python -m benchmarks.structures --sizes 32,25,2 --operations train  one cell, other rows are kept
    python -m benchmarks.structures --parts speed --structures "projective tree" "span tree"
    python -m benchmarks.structures --parts accuracy memory
    python -m benchmarks.structures --native                            with the C++ kernels, see `native`
    python -m benchmarks.structures --native --parts floors             only the training steps of chains over the floor
    python -m benchmarks.structures --native --parts speed --structures CTC --out results/ctc.json

Speed is the peer's time divided by ours: 3 means three times faster. One thread, float32, interleaved in one
process (see `timing`). `cases` defines the operations of each library.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from foveal.inference import _native

from . import accuracy, memory, native, tree_accuracy
from .cases import SEED, US, Call, Family, Size
from .families import FAMILIES
from .results import Results, Row
from .timing import Plan, Timing, compare, use_one_thread

OUT = Path("results/structures.json")
NATIVE_OUT = Path("results/structures_native.json")
STRUCTURES = tuple(dict.fromkeys(family.structure for family in FAMILIES))
OTHER_PARTS = {
    "accuracy": (accuracy.rows, tree_accuracy.rows),
    "memory": (memory.rows,),
}
PARTS = ("speed", *OTHER_PARTS)
NATIVE_PARTS = ("speed", "accuracy", "native")
# "native" contains the rows of both others, which can be measured again alone.
ONLY_NATIVE = {
    "native": (native.rows,),
    "floors": (native.floor_rows,),
    "tangents": (native.tangent_rows,),
}

# Targets: how many times faster than the peer.
SPEED_TARGETS = {
    "chain train (32, 25, 2) vs torch-struct": 3.0,
    "chain train (32, 50, 20) vs torch-struct": 30.0,
    "chain train (16, 200, 50) vs torch-struct": 50.0,
    "projective tree train (32, 10) vs torch-struct": 5.0,
    "projective tree train (32, 20) vs torch-struct": 5.0,
    "projective tree train (32, 40) vs torch-struct": 5.0,
    "projective tree train (16, 80) vs torch-struct": 5.0,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The selection to measure; empty sizes and operations mean all."""

    parts: tuple[str, ...]
    structures: tuple[str, ...]
    sizes: tuple[Size, ...]
    operations: tuple[str, ...]
    rounds: int
    out: Path
    fresh: bool
    native: bool

    def wants(self, family: Family) -> tuple[Size, ...]:
        """Return the sizes of a family to measure."""
        if family.structure not in self.structures:
            return ()
        return tuple(size for size in family.sizes if not self.sizes or size in self.sizes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the requested measurements, print them and write them to the results file."""
    options = parse(arguments)
    console = Console()
    use_one_thread()
    _native._IN_USE = options.native
    packages = sorted({peer for family in FAMILIES for peer in family.peers})
    made_by = f"python -m benchmarks.structures{' --native' if options.native else ''}"
    if options.out not in (OUT, NATIVE_OUT):  # a file of some structures only
        chosen = " ".join(f'"{name}"' if " " in name else name for name in options.structures)
        parts = " ".join(options.parts)
        made_by += f" --parts {parts} --structures {chosen} --out {options.out}"
    results = Results.here(made_by, packages=packages)
    if not options.fresh:
        results = results.continued_from(options.out)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        if "speed" in options.parts:
            results = measure_speed(options, results, progress)
        parts = {**OTHER_PARTS, **ONLY_NATIVE} if options.native else OTHER_PARTS
        for name, sources in parts.items():
            if name in options.parts:
                task = progress.add_task(name, total=len(sources))
                for rows in sources:
                    results = results.with_rows(rows())
                    results.save(options.out)
                    progress.advance(task)
    for family in FAMILIES:
        console.print(speed_table(family, results))
    console.print(other_table(results))
    for row in results.missed():
        console.print(f"[red]misses its target[/red]  {describe(row)}", highlight=False)
    console.print(f"written to {options.out}", highlight=False)


def parse(arguments: Sequence[str] | None) -> Options:
    """Parse the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structures")
    parser.add_argument("--native", action="store_true", help="with the C++ kernels")
    parser.add_argument("--parts", nargs="+", choices={*PARTS, *ONLY_NATIVE}, default=())
    parser.add_argument("--structures", nargs="+", choices=STRUCTURES, default=STRUCTURES)
    parser.add_argument(
        "--sizes", nargs="+", type=_size, default=(), help="such as 32,25,2; all if left out"
    )
    parser.add_argument(
        "--operations", nargs="+", default=(), help="such as train argmax; all if left out"
    )
    parser.add_argument("--rounds", type=int, default=Plan().rounds)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--fresh", action="store_true", help="drop the rows that are in the file")
    given = parser.parse_args(arguments)
    known = {size for family in FAMILIES for size in family.sizes}
    if unknown := [size for size in given.sizes if size not in known]:
        parser.error(f"no family has the sizes {unknown}; there are {sorted(known)}")
    return Options(
        parts=tuple(given.parts) or (NATIVE_PARTS if given.native else PARTS),
        structures=tuple(given.structures),
        sizes=tuple(given.sizes),
        operations=tuple(given.operations),
        rounds=given.rounds,
        out=given.out or (NATIVE_OUT if given.native else OUT),
        fresh=given.fresh,
        native=given.native,
    )


def measure_speed(options: Options, results: Results, progress: Progress) -> Results:
    """Time every selected cell; save after each size, hence an interrupted run loses little."""
    cells = [(family, size) for family in FAMILIES for size in options.wants(family)]
    task = progress.add_task("speed", total=len(cells))
    for family, size in cells:
        case = family.build(size)
        if options.native:
            case = native.beside_reference(case, family.form)
        for line in case.left_out:
            progress.console.print(line, highlight=False)
        for operation, candidates in case.operations.items():
            if not options.operations or operation in options.operations:
                progress.update(task, description=f"{family.name} {operation} {size}")
                plan = Plan(rounds=options.rounds, budget=family.budget)
                targets = native.TARGETS if options.native else SPEED_TARGETS
                rows = time_cell(family, operation, size, candidates, plan, targets)
                results = results.with_rows(rows)
        results.save(options.out)
        progress.advance(task)
    return results


def time_cell(
    family: Family,
    operation: str,
    size: Size,
    candidates: Mapping[str, Call],
    plan: Plan,
    targets: Mapping[str, float] = SPEED_TARGETS,
) -> list[Row]:
    """Return our own time, and one row per peer that has this operation."""
    timings = compare(candidates, reference=US, plan=plan)
    return [
        _time_row(_time_name(family, operation, size), timings[US]),
        *(
            _ratio_row(_ratio_name(family, operation, size, peer), timing, targets)
            for peer, timing in timings.items()
            if peer != US
        ),
    ]


def speed_table(family: Family, results: Results) -> Table:
    """Return the time of the peers divided by ours, by operation and size."""
    rows = {row.name: row for row in results.rows}
    table = Table(
        title=f"{family.name}, {family.axes}: times faster than the peer, median \\[lowest-highest]"
    )
    table.add_column("operation")
    table.add_column("size")
    table.add_column("ours, ms", justify="right")
    peers = (*family.peers, native.reference_of(family.form))
    for peer in peers:
        table.add_column(peer, justify="right")
    for operation in dict.fromkeys(_operations_of(family, results)):
        for size in family.sizes:
            own = rows.get(_time_name(family, operation, size))
            if own is not None:
                found = [rows.get(_ratio_name(family, operation, size, peer)) for peer in peers]
                cells = [_ratio_cell(row) for row in found]
                table.add_row(operation, str(size), f"{own.value:.3g}", *cells)
    return table


def other_table(results: Results) -> Table:
    """Return the accuracy and memory rows."""
    table = Table(title="accuracy and memory")
    for column in ("what", "value", "unit", "asked for"):
        table.add_column(column)
    for row in results.rows:
        if row.unit not in ("ms", "x faster"):
            asked = "" if row.target is None else f"{row.sense} {row.target:g}"
            table.add_row(row.name, f"{row.value:.3g}", row.unit, asked)
    return table


def describe(row: Row) -> str:
    """Format a row in one line."""
    asked = "" if row.target is None else f", asked for {row.sense} {row.target:g}"
    spread = "" if row.spread is None else f" [{row.spread[0]:.3g} to {row.spread[1]:.3g}]"
    return f"{row.name}: {row.value:.3g} {row.unit}{spread}{asked}"


def _operations_of(family: Family, results: Results) -> list[str]:
    prefix = f"{family.name} "
    return [
        row.name.removeprefix(prefix).partition(" (")[0]
        for row in results.rows
        if row.unit == "ms" and row.name.startswith(prefix)
    ]


def _time_name(family: Family, operation: str, size: Size) -> str:
    return f"{family.name} {operation} {size} time"


def _ratio_name(family: Family, operation: str, size: Size, peer: str) -> str:
    return f"{family.structure} {operation} {size} vs {peer}"


def _time_row(name: str, timing: Timing) -> Row:
    milliseconds = [1e3 * seconds for seconds in timing.seconds]
    return Row(
        name=name,
        value=median(milliseconds),
        unit="ms",
        spread=(min(milliseconds), max(milliseconds)),
        seeds=(SEED,),
    )


def _ratio_row(name: str, timing: Timing, targets: Mapping[str, float]) -> Row:
    target = targets.get(name)
    return Row(
        name=name,
        value=timing.ratio,
        unit="x faster",
        spread=timing.ratio_spread,
        seeds=(SEED,),
        target=target,
        sense=None if target is None else ">=",
    )


def _ratio_cell(row: Row | None) -> str:
    if row is None or row.spread is None:
        return "-"
    color = "red" if row.misses else "green" if row.target is not None else "default"
    return f"[{color}]{row.value:.3g}[/{color}] \\[{row.spread[0]:.3g}-{row.spread[1]:.3g}]"


def _size(text: str) -> Size:
    return tuple(int(number) for number in text.split(","))


if __name__ == "__main__":
    main()

"""What do the examples reach, trained in full?

    python -m benchmarks.examples                              every example, seed 0
    python -m benchmarks.examples crf_tagger --seeds 0 1 2

A run is the command of the example as a reader would type it. Its lines "name: value unit" become
rows, with the mean over the seeds. Wall-clock time depends on the load of the machine; CPU time measures
the cost of a run.
"""

import argparse
import re
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from time import perf_counter

from examples.support import DATA

from .results import Results, Row, digest
from .timing import use_one_thread

ROOT = Path(__file__).resolve().parent.parent
SUPPORT = sorted((ROOT / "examples/support").glob("*.py"))
SCORE = re.compile(r"^(?P<name>[^:]+): (?P<value>[0-9.]+) (?P<unit>%|dB|(bits )?per character)$")

# The files each example reads, below the data folder; two examples generate their data.
FILES: dict[str, list[str]] = {
    "crf_tagger": [f"conll2000_chunking/{part}.txt.gz" for part in ("train", "test")],
    "dependency_parser": [
        f"ud_english_ewt/en_ewt-ud-{part}.conllu.gz" for part in ("train", "test")
    ],
    "character_language_model": ["tinyshakespeare/input.txt.gz"],
    "sentiment": ["sentence_polarity/sentence_polarity.zip"],
    "copy_and_reverse": [],
    "prefix_to_infix": [],
    "text_to_speech": [
        f"audio_digits/audiomnist/{speaker}/{digit}_{take}.flac"
        for speaker in ("12", "01", "03", "07", "19", "26", "28", "36", "43", "47")
        for digit in range(10)
        for take in ("00", "10", "20", "30", "40")
    ],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """The output and the cost of one run of an example."""

    scores: Mapping[tuple[str, str], float]  # by name and unit
    wall_clock: float
    processor: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the examples and write a results file for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.examples")
    parser.add_argument("examples", nargs="*", metavar="example", help=f"of {', '.join(FILES)}")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    given = parser.parse_args(arguments)
    if unknown := set(given.examples) - set(FILES):
        parser.error(f"no example {sorted(unknown)}; there are {list(FILES)}")
    for example in given.examples or FILES:
        path = given.out / f"{example}.json"
        measure(example, given.seeds).save(path)
        print(f"written to {path}")


def measure(example: str, seeds: Sequence[int]) -> Results:
    """Run an example for every seed and gather the figures."""
    use_one_thread()  # as the example does; the results record the number of threads
    source = f"examples/{example}.py"
    chosen = " ".join(str(seed) for seed in seeds)
    results = replace(
        Results.here(f"python -m benchmarks.examples {example} --seeds {chosen}"),
        data={name: digest(DATA / name) for name in FILES[example]},
        spec={
            "command": f"python {source}",
            source: digest(ROOT / source),
            **{f"examples/support/{path.name}": digest(path) for path in SUPPORT},
        },
    )
    runs = [run(ROOT / source, seed) for seed in seeds]
    rows = [
        _row(name, [r.scores[name, unit] for r in runs], unit, seeds)
        for name, unit in runs[0].scores
    ]
    rows.append(_row("wall-clock of a run", [run.wall_clock for run in runs], "s", seeds))
    rows.append(_row("processor time of a run", [run.processor for run in runs], "s", seeds))
    return results.with_rows(rows)


def run(source: Path, seed: int) -> Run:
    """Run an example, and pass on its output."""
    print(f"{source.name}, seed {seed}", flush=True)
    scores: dict[tuple[str, str], float] = {}
    began, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        [sys.executable, str(source), "--seed", str(seed)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := SCORE.match(line.strip()):
                scores[found["name"], found["unit"]] = float(found["value"])
    if process.returncode or not scores:
        raise SystemExit(f"{source.name} gave no score (exit code {process.returncode})")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Run(scores=scores, wall_clock=perf_counter() - began, processor=processor)


def _row(name: str, values: Sequence[float], unit: str, seeds: Sequence[int]) -> Row:
    spread = (min(values), max(values)) if len(values) > 1 else None
    return Row(name=name, value=mean(values), unit=unit, spread=spread, seeds=tuple(seeds))


if __name__ == "__main__":
    main()

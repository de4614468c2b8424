"""Does a corpus of two million lines cost more than one of twenty thousand?

    python -m benchmarks.large_corpus

The corpora contain made-up words with made-up phones, one a hundred times larger than the other: eight files
compressed with zstd, and one plain file. Each corpus has a separate `foveal fit` process with the same model
and batch size: a bidirectional LSTM with 128 units, attention, an LSTM with 128 units, about 64 words per batch.

Both processes are alive at once, but only one runs at a time, in turn; other load on the machine
affects both equally. Token counts come from the log of the run, times are CPU time, and memory is the peak
resident size that the kernel reports. The large run reads and encodes its next examples in the background,
and the figures include this cost.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import zstandard
from rich.console import Console

from .results import Results, Row
from .timing import use_one_thread

OUT = Path("results/large_corpus.json")
LARGE, SMALL, SHARDS = 2_000_000, 20_000, 8
HALF = LARGE // 2  # the lines of the first half of the shards
LETTERS = "abcdefghijklmnopqrstuvwxyzáðéíóúýþæö"
PHONES = [*LETTERS, "aa", "ee", "ii", "oo", "uu", "th", "kh", "ph"]
SETTINGS = {
    "training.epochs": "none",
    "training.steps": "1000000",
    "training.batch_tokens": "1250",
    "training.log_every": "5",
    "training.evaluate_every": "1000000",
    "training.checkpoint_seconds": "100000",
    **{f"task.model.{side}.embedding_size": "64" for side in ("encoder", "decoder")},
    **{f"task.model.{side}.hidden_size": "128" for side in ("encoder", "decoder")},
}
WARM = 100  # steps before anything is measured
SLICE = 5.0  # CPU seconds of one process before the other takes its turn
TOO_LONG = 1800.0  # seconds to wait for a step
TICK = os.sysconf("SC_CLK_TCK")


class Reading(NamedTuple):
    """The progress of a run."""

    processor: float  # CPU seconds
    symbols: int
    steps: int


class Fit:
    """A `foveal fit` in a separate process, which can be paused and resumed."""

    def __init__(self, train: str, dev: Path, out: Path) -> None:
        words = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        self._log = out / "log.jsonl"
        self._read, self._symbols, self._steps = 0, 0, 0
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "foveal.cli", "fit", train),
                *("--dev", str(dev), "--out", str(out)),
                *words,
            ],
            stdout=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    def reading(self) -> Reading:
        """Return the CPU time and the number of tokens so far."""
        if self._log.exists():
            with self._log.open("rb") as file:
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read += len(line)
                    event = json.loads(line)
                    if event["event"] == "step_done":
                        self._symbols += event["tokens"]
                        self._steps = event["step"]
        stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return Reading((int(stat[11]) + int(stat[12])) / TICK, self._symbols, self._steps)

    def __enter__(self) -> "Fit":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def warm_up(self) -> Reading:
        """Run the first steps, then pause; return the reading at the first step."""
        first = self.wait_for(1)
        self.wait_for(WARM)
        self.pause()
        return first

    def wait_for(self, step: int) -> Reading:
        """Resume the process until it reaches a step."""
        return self._wait_until(lambda found: found.steps >= step)

    def _wait_until(self, holds: Callable[[Reading], bool]) -> Reading:
        end = time.monotonic() + TOO_LONG
        while not holds(found := self.reading()):
            if self._process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the run has ended, or takes too long: {found}")
            time.sleep(0.05)
        return found

    def pause(self) -> None:
        """Pause the process."""
        self._process.send_signal(signal.SIGSTOP)

    def run_for(self, seconds: float) -> tuple[Reading, Reading]:
        """Resume the process for some CPU seconds, from the end of one step to the end of another."""
        self._process.send_signal(signal.SIGCONT)
        before = self.wait_for(self.reading().steps + 1)
        self._wait_until(lambda found: found.processor >= before.processor + seconds)
        after = self.wait_for(self.reading().steps + 1)
        self.pause()
        return before, after

    def most_memory(self) -> float:
        """Return the peak memory in megabytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024


def made_up(number: int, seed: int) -> Iterator[str]:
    """Yield lines of letters and phones, about as long as real words."""
    draw = random.Random(seed)
    for _ in range(number):
        length = min(16, max(3, round(draw.gauss(8.5, 2.5))))
        letters = draw.choices(range(len(LETTERS)), k=length)
        phones = " ".join(PHONES[(7 * letter + 3) % len(PHONES)] for letter in letters)
        yield f"{''.join(LETTERS[letter] for letter in letters)}\t{phones}\n"


def write(folder: Path, large: int) -> tuple[str, Path, Path]:
    """Write the two corpora and a development set."""
    for shard in range(SHARDS):
        text = "".join(made_up(large // SHARDS, seed=shard)).encode()
        packed = zstandard.ZstdCompressor().compress(text)
        (folder / f"large-{shard}.tsv.zst").write_bytes(packed)
    for name, number in (("small", SMALL), ("dev", 200)):
        text = "".join(made_up(number, seed=1000 + number))
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    return str(folder / "large-*.tsv.zst"), folder / "small.tsv", folder / "dev.tsv"


def rates(large: Fit, small: Fit, rounds: int, say: Callable[[str], None]) -> list[list[float]]:
    """Return the tokens per CPU second: for each process, one number per round."""
    found: list[list[float]] = [[], []]
    for number in range(rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        for which in order:
            before, after = (large, small)[which].run_for(SLICE)
            rate = (after.symbols - before.symbols) / (after.processor - before.processor)
            found[which].append(rate)
            say(f"round {number + 1}, {('large', 'small')[which]}, step {after.steps}: {rate:.0f}")
    return found


def rows(
    large: Fit, small: Fit, before_first: dict[int, float], speeds: list[list[float]]
) -> list[Row]:
    """Return the ratios with their targets, and the underlying figures."""
    ratios = [one / other for one, other in zip(*speeds, strict=True)]
    whole = sum(speeds[0]) / sum(speeds[1])
    found = [
        Row(
            name=f"{LARGE:,} lines in {SHARDS} files: most memory resident",
            value=large.most_memory(),
            unit="MB",
            target=1500.0,
            sense="<=",
        ),
        Row(name=f"{SMALL:,} lines: most memory resident", value=small.most_memory(), unit="MB"),
        Row(
            name=f"target symbols each second, {LARGE:,} lines to {SMALL:,}",
            value=whole,
            unit="x",
            spread=(min(ratios), max(ratios)),
            target=0.98,
            sense=">=",
        ),
    ]
    for number, seconds in before_first.items():
        found.append(
            Row(
                name=f"{number:,} lines: processor time before the first step",
                value=seconds,
                unit="s",
                target=10.0 if number == HALF else None,
                sense="<=" if number == HALF else None,
            )
        )
    for name, speed in zip((LARGE, SMALL), speeds, strict=True):
        found.append(
            Row(
                name=f"{name:,} lines: target symbols trained on",
                value=sum(speed) / len(speed),
                unit="symbols/s",
                spread=(min(speed), max(speed)),
            )
        )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write all figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_corpus")
    parser.add_argument("--rounds", type=int, default=12, help="turns of each process")
    given = parser.parse_args(arguments)
    use_one_thread()  # as the processes do; the results record the number of threads
    say = Console(highlight=False).print
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, small_file, dev = write(folder, LARGE)
        half = str(folder / f"large-[0-{SHARDS // 2 - 1}].tsv.zst")
        with Fit(half, dev, folder / "half") as other:
            before_first = {HALF: other.wait_for(1).processor}
        with Fit(files, dev, folder / "large") as large:
            before_first[LARGE] = large.warm_up().processor
            say(f"{before_first} s of the processor to the first steps")
            with Fit(str(small_file), dev, folder / "small") as small:
                small.warm_up()
                speeds = rates(large, small, given.rounds, say)
                found = rows(large, small, before_first, speeds)
    results = Results.here("python -m benchmarks.large_corpus").with_rows(found)
    results.save(OUT)
    for row in results.rows:
        say(f"{row.name}: {row.value:.3f} {row.unit} {row.spread or ''}")


if __name__ == "__main__":
    main()

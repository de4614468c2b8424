"""Bulk runs on Ray: how fast beside the bare predictor, in how much memory, and what faults leave of them.

    python -m benchmarks.bulk --runs runs                20,000 words, 200,000, and the same with faults

Words are compounds of Icelandic ones, in 64 shards; the model is the one that `benchmarks.serving` asks. A
pool's rate is that between its first records and its last: the start of Ray and of its workers is apart. The
bare predictor is called in a loop before and after each pool, in this process.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard
from pyarrow import parquet

from benchmarks.clusters import nodes, process, wait_for, workers
from benchmarks.results import Results, Row, digest
from benchmarks.serving.models import FILES, SEED, USUAL, fitted, texts
from benchmarks.timing import use_one_thread
from examples.support import DATA
from sightline.data import Example
from sightline.serving import Predictor
from sightline.tasks import load_bundle

OUT = Path("results/scale_bulk.json")
SHARDS, WORKERS = 64, 2
SIZES = 20_000, 200_000
_BARE_SECONDS, _AT_ONCE = 15.0, 4096
_MOST_SECONDS = 1800.0


@dataclass
class Pooled:
    """A job that ended."""

    rate: float  # words a second between the first records and the last
    start: float  # seconds to the first record
    worker_mib: float  # the most that one worker had in memory
    wrong: int  # words that are not in the output exactly once, or checksums that do not fit


def shards(folder: Path, size: int) -> Path:
    """So many words in 64 packed files."""
    folder.mkdir(parents=True)
    generator, words = random.Random(SEED), texts()
    for number in range(SHARDS):
        chosen = generator.choices(words, k=size // SHARDS)
        content = "".join(json.dumps({"source": word}) + "\n" for word in chosen)
        (folder / f"{number:02d}.jsonl.zst").write_bytes(zstandard.compress(content.encode()))
    return folder


def bare_rate(run: Path) -> float:
    """Words a second of the predictor in a loop."""
    task = load_bundle(run)
    predictor, generator, words = Predictor(task, task.spec), random.Random(SEED), texts()
    settings, number, began = predictor.settings(), 0, time.perf_counter()
    while time.perf_counter() - began < _BARE_SECONDS:
        examples = [Example(word) for word in generator.choices(words, k=_AT_ONCE)]
        number += len(predictor.predict(examples, settings))
    return number / (time.perf_counter() - began)


def pooled(run: Path, folder: Path, out: Path) -> Pooled:
    """The shards of a folder by a pool of two."""
    before = _num_done(out)
    began, most = time.time(), [0.0]
    with process(_bulk(run, folder, out), {}) as driver:
        watching = threading.Thread(target=_watch, args=(driver, most), daemon=True)
        watching.start()
        assert driver.wait(_MOST_SECONDS) == 0
    times = sorted(path.stat().st_mtime for path in out.glob("[0-9][0-9].json"))
    size = json.loads((out / "manifest.json").read_text())["lines"]
    # From the time that each worker has done one until each has one left: both are at work all along.
    first, last = times[before + WORKERS - 1], times[-WORKERS]
    steps = len(times) - before - 2 * WORKERS + 1
    return Pooled(
        rate=steps * size / SHARDS / (last - first) if last > first else float("nan"),
        start=times[before] - began,
        worker_mib=most[0],
        wrong=_num_wrong(folder, out),
    )


def _bulk(run: Path, folder: Path, out: Path) -> list[str]:
    words = ["bulk", str(run), "--in", str(folder / "*.zst"), "--out", str(out)]
    return ["-m", "sightline.cli", *words, "--ray", "--workers", str(WORKERS)]


def _num_done(out: Path) -> int:
    return len(list(out.glob("[0-9][0-9].json")))


def _watch(driver: "subprocess.Popen[str]", most: list[float]) -> None:
    """Twice a second, what the largest worker has in memory."""
    while driver.poll() is None:
        for worker in workers("_Worker"):
            with suppress(OSError):
                status = Path(f"/proc/{worker}/status").read_text()
                (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
                most[0] = max(most[0], int(line.split()[1]) / 1024)
        time.sleep(0.5)


def _num_wrong(folder: Path, out: Path) -> int:
    """Words of the input that are not in the output once and in their place, and sums that do not fit."""
    manifest, wrong = json.loads((out / "manifest.json").read_text()), 0
    for path in sorted(folder.iterdir()):
        content = zstandard.decompress(path.read_bytes())
        asked = [json.loads(line)["source"] for line in content.decode().splitlines()]
        table = out / f"{path.name.partition('.')[0]}.parquet"
        answered = parquet.read_table(table, columns=["line", "source"]).to_pydict()
        lines = list(range(1, len(asked) + 1))
        wrong += len(asked) * (answered["line"] != lines or answered["source"] != asked)
        entry = manifest["files"][table.stem]
        wrong += entry["output_sha256"] != hashlib.sha256(table.read_bytes()).hexdigest()
        wrong += entry["input_sha256"] != hashlib.sha256(path.read_bytes()).hexdigest()
    return wrong


def with_faults(run: Path, folder: Path, out: Path) -> list[Row]:
    """A worker is killed, then one of two nodes, then the driver; then the job is started again."""
    with (
        nodes(are_replaced=False) as cluster,
        process(_bulk(run, folder, out), {"RAY_ADDRESS": cluster.address}) as driver,
    ):
        wait_for(lambda: _num_done(out) >= 4, driver, _MOST_SECONDS)
        os.kill(workers("_Worker")[0], signal.SIGKILL)
        wait_for(lambda: _num_done(out) >= 12, driver, _MOST_SECONDS)
        cluster.lose_one()
        wait_for(lambda: _num_done(out) >= 20, driver, _MOST_SECONDS)
        driver.kill()
        driver.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("[0-9][0-9].json")}
    found = pooled(run, folder, out)
    done_again = sum((out / name).stat().st_mtime_ns != stamp for name, stamp in kept.items())
    name = "a worker, a node and the driver killed"
    return [
        Row(name=f"{name}, shards done before", value=len(kept), unit="shards"),
        Row(
            name=f"{name}, of these done again",
            value=done_again,
            unit="shards",
            target=0,
            sense="<=",
        ),
        Row(
            name=f"{name}, words not in the output exactly once",
            value=found.wrong,
            unit="words",
            target=0,
            sense="<=",
        ),
    ]


def measured(run: Path, folder: Path) -> list[Row]:
    """All figures."""
    found = list[Row]()
    for size in SIZES:
        words, name = shards(folder / f"in{size}", size), f"{size:,} words"
        before = bare_rate(run)
        pool = pooled(run, words, folder / f"out{size}")
        bare = statistics.mean((before, bare_rate(run)))
        found += [
            Row(name=f"{name}, pool of {WORKERS}, words/s", value=pool.rate, unit="1/s"),
            Row(name=f"{name}, bare predictor, words/s", value=bare, unit="1/s"),
            Row(
                name=f"{name}, pool to the bare predictor times {WORKERS}",
                value=pool.rate / bare / WORKERS,
                unit="x",
                target=0.9,
                sense=">=",
            ),
            Row(name=f"{name}, to the first shard", value=pool.start, unit="s"),
            Row(name=f"{name}, memory of a worker, most", value=pool.worker_mib, unit="MiB"),
            Row(
                name=f"{name}, words not in the output exactly once",
                value=pool.wrong,
                unit="words",
                target=0,
                sense="<=",
            ),
        ]
    return found + with_faults(run, folder / f"in{SIZES[-1]}", folder / "faults")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=Path, required=True, help="fitted there if need be")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    use_one_thread()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(fitted(options.runs)[USUAL], Path(folder))
    for row in rows:
        print(f"{row.name}: {row.value:.4g} {row.unit}{'  MISSED' if row.misses else ''}")
    seconds = Row(name="wall-clock of all this", value=time.perf_counter() - began, unit="s")
    result = Results.here("python -m benchmarks.bulk", packages=("ray", "pyarrow", "fsspec"))
    data = {name: digest(DATA / name) for name in FILES.values()}
    spec = {"seed": SEED, "shards": SHARDS, "workers": WORKERS, "words": list(SIZES)}
    replace(result.with_rows([*rows, seconds]), data=data, spec=spec).save(options.out)


if __name__ == "__main__":
    main()

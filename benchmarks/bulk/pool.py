"""A job of many words for a pool of workers, compared with the bare predictor."""

import hashlib
import json
import random
import subprocess
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import zstandard
from pyarrow import parquet

from benchmarks.clusters import process, workers
from benchmarks.serving.models import SEED, texts
from benchmarks.timing import use_one_thread
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.serving import Predictor

SHARDS, WORKERS = 64, 2
MOST_SECONDS = 1800.0
_BARE_SECONDS, _AT_ONCE = 15.0, 4096


@dataclass
class Pooled:
    """The figures of a finished job."""

    rate: float  # words per second between the first and the last records
    start: float  # seconds to the first record
    worker_mib: float  # peak memory of the largest worker
    wrong: int  # words that are not in the output exactly once, or wrong checksums


def shards(folder: Path, size: int) -> Path:
    """Write words into 64 compressed files."""
    folder.mkdir(parents=True)
    generator, words = random.Random(SEED), texts()
    for number in range(SHARDS):
        chosen = generator.choices(words, k=size // SHARDS)
        content = "".join(json.dumps({"source": word}) + "\n" for word in chosen)
        (folder / f"{number:02d}.jsonl.zst").write_bytes(zstandard.compress(content.encode()))
    return folder


def bare_rate(run: Path, width: int | None = None) -> float:
    """Return the words per second of concurrent bare predictors, one for each worker of the pool.

    `width` is the beam size and defaults to the model's setting.
    """
    with ProcessPoolExecutor(WORKERS, get_context("spawn"), use_one_thread) as processes:
        return sum(processes.map(_looped, [run] * WORKERS, [width] * WORKERS))


def _looped(run: Path, width: int | None) -> float:
    task = load_bundle(run)
    predictor, generator, words = Predictor(task, task.spec), random.Random(SEED), texts()
    settings, number, began = predictor.settings(beam_size=width), 0, time.perf_counter()
    while time.perf_counter() - began < _BARE_SECONDS:
        examples = [Example(word) for word in generator.choices(words, k=_AT_ONCE)]
        number += len(predictor.predict(examples, settings))
    return number / (time.perf_counter() - began)


def pooled(run: Path, folder: Path, out: Path, *more: str) -> Pooled:
    """Predict the shards of a folder with a pool of two workers; `more` are options of the command."""
    before = num_done(out)
    began, most = time.time(), [0.0]
    with process([*bulk_command(run, folder, out), *more], {}) as driver:
        watching = threading.Thread(target=_watch, args=(driver, most), daemon=True)
        watching.start()
        assert driver.wait(MOST_SECONDS) == 0
    times = sorted(path.stat().st_mtime for path in out.glob("[0-9][0-9].json"))
    size = json.loads((out / "manifest.json").read_text())["lines"]
    # Between each worker's first finished shard and its last one, both workers are busy all the time.
    first, last = times[before + WORKERS - 1], times[-WORKERS]
    steps = len(times) - before - 2 * WORKERS + 1
    return Pooled(
        rate=steps * size / SHARDS / (last - first) if last > first else float("nan"),
        start=times[before] - began,
        worker_mib=most[0],
        wrong=_num_wrong(folder, out),
    )


def bulk_command(run: Path, folder: Path, out: Path) -> list[str]:
    """Return the arguments of Python for a bulk run over the shards of a folder."""
    words = ["bulk", str(run), "--in", str(folder / "*.zst"), "--out", str(out)]
    return ["-m", "foveal.cli", *words, "--ray", "--workers", str(WORKERS)]


def num_done(out: Path) -> int:
    """Count the finished shards."""
    return len(list(out.glob("[0-9][0-9].json")))


def _watch(driver: "subprocess.Popen[str]", most: list[float]) -> None:
    """Measure the memory of the largest worker twice a second."""
    while driver.poll() is None:
        for worker in workers("_Worker"):
            with suppress(OSError):
                status = Path(f"/proc/{worker}/status").read_text()
                (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
                most[0] = max(most[0], int(line.split()[1]) / 1024)
        time.sleep(0.5)


def _num_wrong(folder: Path, out: Path) -> int:
    """Count the input words that are not in the output once and in order, and the wrong checksums."""
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

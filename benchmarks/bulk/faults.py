"""Bulk runs whose workers, node and driver are killed while they run."""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.clusters import nodes, process, wait_for, workers
from benchmarks.results import Row
from benchmarks.serving.models import SEED
from benchmarks.simulation import Cluster, bulk_seconds

from .pool import MOST_SECONDS, SHARDS, WORKERS, bulk_command, num_done, pooled

_BETWEEN_KILLS = 12.0  # seconds, on average


def with_faults(run: Path, folder: Path, out: Path) -> list[Row]:
    """Kill a worker, then one of two nodes, then the driver; then start the job again."""
    with (
        nodes(are_replaced=False) as cluster,
        process(bulk_command(run, folder, out), {"RAY_ADDRESS": cluster.address}) as driver,
    ):
        wait_for(lambda: num_done(out) >= 4, driver, MOST_SECONDS)
        os.kill(workers("_Worker")[0], signal.SIGKILL)
        wait_for(lambda: num_done(out) >= 12, driver, MOST_SECONDS)
        cluster.lose_one()
        wait_for(lambda: num_done(out) >= 20, driver, MOST_SECONDS)
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


def unlucky(run: Path, folder: Path, out: Path, pool_rate: float, start: float) -> list[Row]:
    """Kill workers at random times, and compare with a simulation.

    The simulation uses the measured rate of a run without losses and the measured start time of a worker.
    """
    generator, kills, began = random.Random(SEED), 0, time.time()
    with process(bulk_command(run, folder, out), {}) as driver:
        wait_for(lambda: num_done(out) >= 1, driver, MOST_SECONDS)
        while driver.poll() is None:
            try:
                driver.wait(generator.expovariate(1 / _BETWEEN_KILLS))
            except subprocess.TimeoutExpired:
                if living := workers("_Worker"):
                    os.kill(generator.choice(living), signal.SIGKILL)
                    kills += 1
        assert driver.wait() == 0
    records = [path.stat().st_mtime for path in out.glob("[0-9][0-9].json")]
    seconds, restart = max(records) - began, _start_of_a_worker(run)
    size = json.loads((out / "manifest.json").read_text())["lines"]
    cluster = Cluster(
        workers=WORKERS,
        start=start,
        restart=restart,
        losses=3600 * kills / WORKERS / (max(records) - min(records)),
    )
    simulated = statistics.median(
        bulk_seconds(SHARDS, size / SHARDS / pool_rate * WORKERS, cluster, seed=seed)
        for seed in range(200)
    )
    name = "workers killed at random"
    return [
        Row(name=f"{name}, kills", value=kills, unit="workers"),
        Row(name=f"{name}, the start of a worker by itself", value=restart, unit="s"),
        Row(name=f"{name}, all in", value=seconds, unit="s"),
        Row(name=f"{name}, simulated to measured", value=simulated / seconds, unit="x"),
    ]


def _start_of_a_worker(run: Path) -> float:
    """Return the seconds until a new process has loaded a model."""
    code = (
        "from pathlib import Path; from foveal.bundles import load_bundle; "
        f"load_bundle(Path({str(run)!r}))"
    )
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, timeout=MOST_SECONDS)
    return time.perf_counter() - began

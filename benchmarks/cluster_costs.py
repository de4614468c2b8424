"""Estimate the cost and the bottleneck of a cluster from figures measured on one core and a simulation.

    python -m benchmarks.cluster_costs --runs runs       some two minutes

Reads the results of `benchmarks.bulk`, `benchmarks.serving` and `benchmarks.training_peers`. The failure rate
of machines and the speed of the network cannot be measured here; both are assumptions listed in the results.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

import torch
from torch import distributed
from torch.multiprocessing.spawn import spawn

from benchmarks.measuring import measured_rows
from benchmarks.results import Results, Row
from benchmarks.served import served
from benchmarks.serving.models import texts
from benchmarks.serving.throughput import CONCURRENCY, load
from benchmarks.simulation import Cluster, bulk_seconds, training_seconds
from foveal.scale import Bulk

OUT = Path("results/scale_costs.json")
DAY = 86_400.0
WORDS_A_DAY, TOKENS = 10**9, 10**10
SHARD_SECONDS = 600.0
# Assumed, not measured: a worker is lost once a month; speeds differ by a tenth; 10 Gbit/s between machines.
LOSSES, SPREAD, BYTES_A_SECOND = 1 / (24 * 30), 0.1, 1.25e9
BATCH_SECONDS = 1.0  # computing time between two exchanges of gradients
CHECKPOINT_SECONDS = 60.0  # between two checkpoints
SEEDS = range(10)  # the results are means over these simulations
_LISTED, _EXCHANGES = 2000, 30


def figure(results: str, name: str) -> float:
    """Return a figure that another benchmark has measured."""
    rows = Results.load(Path(f"results/{results}.json")).rows
    return next(row.value for row in rows if row.name == name)


def listing_seconds(run: Path, folder: Path) -> float:
    """Return the seconds per shard to list it and to check that it is finished."""
    for number in range(_LISTED):
        (folder / f"{number:05d}.txt").write_text("")
    job = Bulk(bundle=run, inputs=[str(folder / "*.txt")], out=str(folder / "out"))
    answer = job.answerer()
    for shard in job.shards():
        answer(shard, lambda lines: None)
    began = time.perf_counter()
    assert not job.missing(job.shards())
    return (time.perf_counter() - began) / _LISTED


def exchange_seconds(size: int, folder: Path) -> float:
    """Return the seconds to sum gradients of `size` bytes over two processes of this machine."""
    spawn(_exchange, (size, str(folder)), nprocs=2)
    return float((folder / "seconds").read_text())


def _exchange(rank: int, size: int, folder: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=2)
    gradients, taken = torch.ones(size // 4), list[float]()
    for _ in range(_EXCHANGES):
        distributed.barrier()
        began = time.perf_counter()
        distributed.all_reduce(gradients)
        taken.append(time.perf_counter() - began)
    if rank == 0:
        (Path(folder) / "seconds").write_text(str(median(taken)))
    distributed.destroy_process_group()


def request_kib(run: Path, folder: Path) -> float:
    """Return the memory of a request in progress: the growth of a server under load, per connection."""
    with served([run], folder / "log") as server:
        load(server, run.name, texts()[:1], 1.0)
        before = server.resident_mib
        load(server, run.name, texts(), 5.0)
        return 1024 * max(0.0, server.resident_mib - before) / CONCURRENCY


def words_a_day(start: float, restart: float, rate: float) -> list[Row]:
    """Bulk: the number of workers for a billion words a day."""
    shards = math.ceil(WORDS_A_DAY / rate / SHARD_SECONDS)

    def seconds(workers: int) -> float:
        cluster = Cluster(
            workers=workers, start=start, restart=restart, losses=LOSSES, spread=SPREAD
        )
        return mean(bulk_seconds(shards, SHARD_SECONDS, cluster, seed=seed) for seed in SEEDS)

    workers = _fewest(lambda number: seconds(number) <= DAY, math.ceil(WORDS_A_DAY / rate / DAY))
    ideal = WORDS_A_DAY / rate / workers
    name = "10^9 words a day"
    return [
        Row(name=f"{name}, workers", value=workers, unit="cores"),
        Row(name=f"{name}, shards of ten minutes", value=shards, unit="shards"),
        Row(
            name=f"{name}, share of the time at work", value=ideal / seconds(workers), unit="share"
        ),
    ]


def _fewest(is_enough: Callable[[int], bool], number: int) -> int:
    while not is_enough(number):
        number += max(1, number // 100)
    return number


def tokens_trained(rate: float, size: int, restart: float) -> list[Row]:
    """Training: days for ten billion tokens, and the fraction of time spent on exchanging gradients."""
    found = list[Row]()
    for workers in (8, 64, 512):
        # A ring: every worker sends and receives all gradients nearly twice.
        exchange = 2 * (workers - 1) / workers * size / BYTES_A_SECOND
        steps = math.ceil(TOKENS / (rate * workers * BATCH_SECONDS))
        cluster = Cluster(workers=workers, restart=restart, losses=LOSSES, spread=0.0)
        seconds = mean(
            training_seconds(
                steps,
                BATCH_SECONDS + exchange,
                cluster,
                checkpoint=CHECKPOINT_SECONDS,
                seed=seed,
            )
            for seed in SEEDS
        )
        name = f"10^10 training tokens, {workers} workers"
        found += [
            Row(name=f"{name}, days", value=seconds / DAY, unit="days"),
            Row(
                name=f"{name}, share of a step that exchanges gradients",
                value=exchange / (exchange + BATCH_SECONDS),
                unit="share",
            ),
            Row(
                name=f"{name}, share of the time lost with workers",
                value=1 - steps * (BATCH_SECONDS + exchange) / seconds,
                unit="share",
            ),
        ]
    return found


def measured(run: Path, folder: Path) -> list[Row]:
    """Measure all figures."""
    weights = (run / "weights.safetensors").stat().st_size
    checkpoint = max(_bytes_of(path) for path in (run / "checkpoints").iterdir() if path.is_dir())
    words = figure("scale_bulk", "200,000 words, pool of 2, words/s") / 2
    start = figure("scale_bulk", "20,000 words, to the first shard")
    restart = figure("scale_bulk", "workers killed at random, the start of a worker by itself")
    gradients = 4 * int(figure("ja_en", "characters: parameters"))
    tokens = figure("training_peers", "Japanese to English, 256 units, batch 64: ours, bf16")
    served_rate = figure("serving", "capacity, 1.9 MB of weights, requests/s per core")
    (folder / "shards").mkdir()
    (folder / "exchange").mkdir()
    listing = listing_seconds(run, folder / "shards")
    exchange = exchange_seconds(gradients, folder / "exchange")
    return [
        Row(name="one core, bulk, words/s", value=words, unit="1/s"),
        Row(name="one core, served, requests/s", value=served_rate, unit="1/s"),
        Row(name="one core, training, target symbols/s", value=tokens, unit="1/s"),
        Row(name="weights", value=weights / 1e6, unit="MB"),
        Row(name="checkpoint", value=checkpoint / 1e6, unit="MB"),
        Row(name="memory of a request", value=request_kib(run, folder), unit="KiB"),
        Row(name="to find a shard and its record", value=1000 * listing, unit="ms"),
        Row(name="gradients of the model that is trained", value=gradients / 1e6, unit="MB"),
        Row(name="to sum gradients, two processes here", value=1000 * exchange, unit="ms"),
        *words_a_day(start, restart, words),
        *tokens_trained(tokens, gradients, restart),
    ]


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    rows, out = measured_rows(
        measured, arguments, about="What a cluster would cost, and what limits it next.", out=OUT
    )
    said = {
        "losses of a worker in 30 days": LOSSES * 24 * 30,
        "standard deviation of the logarithm of speeds": SPREAD,
        "bytes a second between machines": BYTES_A_SECOND,
        "seconds between exchanges of gradients": BATCH_SECONDS,
        "seconds between checkpoints": CHECKPOINT_SECONDS,
    }
    result = Results.here("python -m benchmarks.cluster_costs")
    replace(result.with_rows(rows), spec=said).save(out)


if __name__ == "__main__":
    main()

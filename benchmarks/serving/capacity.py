"""Measure the requests per second of one core, by the size of the model."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.results import Row
from benchmarks.served import served
from benchmarks.serving.load import OK

from .throughput import load

SECONDS = 10.0
_WARMING = 3.0
_MB = 1e6


def capacity(runs: Mapping[str, Path], texts: Sequence[str]) -> list[Row]:
    """Measure each model separately, at concurrency 32."""
    found = list[Row]()
    for run in runs.values():
        with (
            tempfile.TemporaryDirectory() as folder,
            served([run], Path(folder) / "log") as server,
        ):
            load(server, run.name, texts, _WARMING)
            used = server.cpu_seconds
            one = load(server, run.name, texts, SECONDS)
            used = server.cpu_seconds - used
            memory = server.resident_mib
        size = (run / "weights.safetensors").stat().st_size / _MB
        name = f"capacity, {size:.1f} MB of weights"
        found += [
            Row(name=f"{name}, requests/s per core", value=one.count(OK) / used, unit="1/s"),
            Row(name=f"{name}, p50 at concurrency 32", value=one.percentile(0.5), unit="ms"),
            Row(name=f"{name}, p99 at concurrency 32", value=one.percentile(0.99), unit="ms"),
            Row(name=f"{name}, memory of both processes", value=memory, unit="MiB"),
        ]
    return found

"""Bulk runs on Ray with workers, nodes and drivers killed on the way: every line once all the same."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.scale.test_bulk import GOOD, check_whole

SECONDS = 240  # that a start and a job may take on a busy machine
SHARDS, LINES = 12, 3000
_CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
print(cluster.address, flush=True)
sys.stdin.readline()
cluster.remove_node(nodes[0], allow_graceful=False)
print("removed", flush=True)
sys.stdin.readline()
cluster.shutdown()
"""
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    "RAY_object_store_memory": str(200 << 20),
}


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(SHARDS):
        (folder / f"{number}.txt").write_text("abcdefgh\n" * LINES)
    return folder


@contextlib.contextmanager
def process(
    words: list[str], more: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """Python with these words, and all that it starts, killed afterwards."""
    started = subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | _ENVIRONMENT | dict(more or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.communicate(timeout=SECONDS)


def bulk(folder: Path, out: Path) -> list[str]:
    pattern = str(folder / "*.txt")
    words = ["bulk", str(GOOD), "--in", pattern, "--out", str(out), "--ray", "--workers", "2"]
    return ["-m", "sightline.cli", *words]


def wait_for(is_so: Callable[[], bool], running: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        assert running.poll() is None, "it ended before it should"
        time.sleep(0.02)


def workers(session: int) -> list[int]:
    """Processes of the pool that a driver started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            command = (path / "cmdline").read_bytes()
            if (
                b"ray::" in command
                and b"_Worker" in command
                and os.getsid(int(path.name)) == session
            ):
                found.append(int(path.name))
    return found


def num_done(out: Path) -> int:
    return len(list(out.glob("*[0-9].json")))


@pytest.mark.timeout(3 * SECONDS)
def test_a_worker_and_then_the_driver_are_killed(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with process(bulk(shards, out)) as driver:
        wait_for(lambda: num_done(out) >= 1, driver)
        killed = workers(driver.pid)
        assert killed
        os.kill(killed[0], signal.SIGKILL)
        wait_for(lambda: num_done(out) >= 5, driver)
        driver.kill()
        driver.wait(SECONDS)
    done = {path.stem: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert 5 <= len(done) < SHARDS
    with process(bulk(shards, out)) as driver:
        assert driver.wait(SECONDS) == 0
    check_whole(out, shards, [str(number) for number in range(SHARDS)], LINES)
    kept = {path.stem: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert all(kept[name] == done[name] for name in done)


@pytest.mark.timeout(3 * SECONDS)
def test_a_node_is_lost(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with process(["-c", _CLUSTER]) as cluster:
        assert cluster.stdout is not None
        assert cluster.stdin is not None
        address = cluster.stdout.readline().strip()
        with process(bulk(shards, out), {"RAY_ADDRESS": address}) as driver:
            wait_for(lambda: num_done(out) >= 2, driver)
            cluster.stdin.write("\n")
            cluster.stdin.flush()
            assert cluster.stdout.readline().strip() == "removed"
            assert num_done(out) < SHARDS
            assert driver.wait(SECONDS) == 0
    check_whole(out, shards, [str(number) for number in range(SHARDS)], LINES)

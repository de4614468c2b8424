"""Bulk runs on Ray write every line exactly once, even if workers, nodes and drivers are killed."""

import os
import signal
from pathlib import Path

import pytest

from benchmarks.clusters import SECONDS, Nodes, nodes, process, wait_for, workers
from tests.scale.test_bulk import GOOD, check_whole

pytestmark = pytest.mark.slow

SHARDS, LINES = 12, 1500


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(SHARDS):
        (folder / f"{number}.txt").write_text("abcdefgh\n" * LINES)
    return folder


def bulk(folder: Path, out: Path) -> list[str]:
    pattern = str(folder / "*.txt")
    words = ["bulk", str(GOOD), "--in", pattern, "--out", str(out), "--ray", "--workers", "2"]
    return ["-m", "foveal.cli", *words]


def num_done(out: Path) -> int:
    return len(list(out.glob("*[0-9].json")))


@pytest.mark.timeout(3 * SECONDS)
def test_a_worker_and_then_the_driver_are_killed(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with process(bulk(shards, out)) as driver:
        wait_for(lambda: num_done(out) >= 1, driver)
        killed = workers("_Worker", driver.pid)
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
def test_a_stranger_is_refused_and_a_node_is_lost(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with nodes(are_replaced=False) as cluster:
        address = {"RAY_ADDRESS": cluster.address}
        with process(bulk(shards, out), address | {"RAY_AUTH_TOKEN": "0" * 64}) as stranger:
            assert stranger.wait(SECONDS) != 0
        assert num_done(out) == 0
        _lose_a_node(cluster, shards, out)


def _lose_a_node(cluster: Nodes, shards: Path, out: Path) -> None:
    with process(bulk(shards, out), {"RAY_ADDRESS": cluster.address}) as driver:
        wait_for(lambda: num_done(out) >= 2, driver)
        cluster.lose_one()
        assert num_done(out) < SHARDS
        assert driver.wait(SECONDS) == 0
    check_whole(out, shards, [str(number) for number in range(SHARDS)], LINES)

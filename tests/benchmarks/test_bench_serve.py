"""The load tester runs against a real server and refuses invalid requests."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.served import ServedProcess, served
from benchmarks.serving.bench_serve import main
from benchmarks.serving.load import Batches, batches_in
from benchmarks.serving.loopback import Loopback, loopback
from foveal.errors import ValueRangeError
from tests.tasks.stored import BUNDLES

pytestmark = pytest.mark.slow

SECONDS = 90
GOOD = BUNDLES / "0.1.0" / "transduction"
TOKEN = "a-token-of-the-tests-1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    folder = tmp_path_factory.mktemp("bench")
    (folder / "tokens").write_text(f"{TOKEN}\n")
    with served([GOOD], folder / "log", options=["--tokens", str(folder / "tokens")]) as process:
        yield process


def test_the_table_of_a_load(server: ServedProcess, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("abc\ndeeadbeeb\na\n")
    ways = ("--seconds", "2", "--concurrency", "8", "--inputs", str(tmp_path / "texts"))
    command = [sys.executable, "-m", "benchmarks.serving.bench_serve"]
    done = subprocess.run(
        [*command, server.url, *ways, "--token-file", str(server.log.parent / "tokens")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    number = re.search(r"answered +([\d,]+) in", done.stdout)
    assert number is not None, done.stdout
    assert int(number[1].replace(",", "")) > 8
    for name in ("requests/s", "p50", "p99", "batch size"):
        assert re.search(rf"{name} +[\d,.]+", done.stdout), done.stdout
    assert re.search(r"rejected +\d", done.stdout)
    assert "failed" not in done.stdout


def test_what_is_refused(server: ServedProcess) -> None:
    for words, told in (
        (("http://example.org", "--seconds", "1"), "only on a server of this machine"),
        (("http://127.0.0.1:9", "--seconds", "1"), "no server answers"),
        ((server.url, "--seconds", "601"), "at most 600"),
        ((server.url, "--concurrency", "257"), "at most 256"),
        ((server.url, "--seconds", "1"), "--token-file"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert told in str(ended.value.code)


@pytest.mark.parametrize(
    "url",
    [
        "http://192.168.0.1:8000",
        "http://0.0.0.0:8000",
        "http://127.0.0.1.example.org",
        "http://localhost.example.org:8000",
        "http://user@example.org",
        "https://127.0.0.1:8000",
        "127.0.0.1:8000",
        "http://[::1",
        "http://127.0.0.1:99999",
        "",
    ],
)
def test_only_this_machine_is_asked(url: str) -> None:
    with pytest.raises(ValueRangeError, match="only on a server of this machine"):
        loopback(url)


def test_addresses_of_this_machine() -> None:
    assert loopback("http://127.0.0.1:8000/") == Loopback("127.0.0.1", 8000)
    assert loopback("http://[::1]:8000") == Loopback("::1", 8000)


def test_batches_are_counted_from_one_moment_to_another() -> None:
    before = _metrics({"8": [1, 1, 3], "12": [0, 2, 2]}, {"8": 10, "12": 4})
    after = _metrics({"8": [2, 4, 9], "12": [0, 2, 3]}, {"8": 40, "12": 9})
    found = batches_in(after).since(batches_in(before))
    counts = {key: count for key, count in found.counts.items() if count}
    assert counts == {("8", 1): 1, ("8", 2): 2, ("8", 4): 3, ("12", 4): 1}
    assert found.sizes == {1: 1, 2: 2, 4: 4}
    assert found.inputs == {"8": 30, "12": 5}
    assert found.mean == 5
    assert batches_in("") == Batches()


def _metrics(counts: dict[str, list[int]], sums: dict[str, int]) -> str:
    lines = ["# TYPE foveal_batch_size histogram"]
    for places, cumulative in counts.items():
        labels = f'model="m",places="{places}"'
        for edge, count in zip((1, 2, 4), cumulative, strict=True):
            lines.append(f'foveal_batch_size_bucket{{le="{edge}.0",{labels}}} {count}.0')
        lines.append(f"foveal_batch_size_count{{{labels}}} {cumulative[-1]}.0")
        lines.append(f"foveal_batch_size_sum{{{labels}}} {sums[places]}.0")
    return "\n".join(lines) + "\n"

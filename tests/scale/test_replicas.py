"""Serving on Ray under load while a replica is killed and the model is replaced: every client gets the
answers of the command line.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.askers import Askers
from benchmarks.clusters import SECONDS, process, wait_for, workers
from foveal.errors import BundleError, ValueRangeError
from foveal.scale.cluster._serving import Deployment, Replicas
from foveal.serving import Limits
from foveal.serving.client import Client
from foveal.serving.client._answers import Answer
from foveal.serving.server._tokens import Tokens
from tests.serving.conftest import GOOD, TOKEN, Server
from tests.serving.test_answers import WORDS, command_line
from tests.serving.test_lifetime import other_version

pytestmark = pytest.mark.slow

ASKERS, PAUSE = 8, 0.05  # seconds: starting replicas need the cores too
BEARER = {"Authorization": f"Bearer {TOKEN}"}
JSON_LINES = ("--format", "jsonl")
LOOPBACK = "0100007F"  # 127.0.0.1, as the kernel writes it


def answers_of(folder: Path) -> Mapping[str, Answer]:
    """Return the answers of the command line, by input."""
    lines = map(json.loads, command_line(folder, WORDS, *JSON_LINES))
    return {line["source"]: Answer.from_data(line) for line in lines}


def listens_on(port: int) -> set[str]:
    """Return the local addresses with a listener on a port."""
    rows = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    local = [row[1].rpartition(":") for row in rows if row[3] == "0A"]  # listening sockets
    return {address for address, _, found in local if int(found, 16) == port}


@pytest.mark.timeout(3 * SECONDS)
def test_a_replica_is_killed_and_a_model_replaced(tmp_path: Path) -> None:
    folder, tokens = Path(shutil.copytree(GOOD, tmp_path / "model")), tmp_path / "tokens"
    tokens.write_text(TOKEN)
    words = ["serve", str(folder), "--ray", "--replicas", "2", "--port", "0"]
    old = answers_of(folder)
    with process(["-m", "foveal.cli", *words, "--tokens", str(tokens)]) as driver:
        assert driver.stdout is not None
        address = driver.stdout.readline().split()[0]
        port = urlsplit(address).port
        assert port is not None
        server = Server(driver, port, tmp_path / "log")
        _check_answers(server, folder)
        with (
            Client(address, token=TOKEN) as client,
            Askers(client, "model", WORDS, number=ASKERS, pause=PAUSE).asking() as load,
        ):
            wait_for(lambda: len(load.answers) > len(WORDS), driver)
            _lose_one(driver)
            other_version(folder)
            _wait_for_others(driver)
            seen = len(load.answers)
            wait_for(lambda: len(load.answers) > seen + 3 * len(WORDS), driver)
        assert server.end() == 0
    assert load.failures == []
    new = answers_of(folder)
    assert all(answer in (old[answer.source], new[answer.source]) for answer in load.answers)
    # Each client may have one request that an old replica accepted.
    assert all(answer == new[answer.source] for answer in load.answers[seen + ASKERS :])
    assert {answer.output for answer in new.values()} != {answer.output for answer in old.values()}


def _check_answers(server: Server, folder: Path) -> None:
    """Check that answers are byte-identical, need a token, and are served on the loopback only."""
    path, body = "/v1/models/model/predict", {"inputs": WORDS}
    assert server.ask(path, body, headers=BEARER).lines == command_line(folder, WORDS, *JSON_LINES)
    assert server.ask(path, body).status == 401
    assert listens_on(server.port) == {LOOPBACK}


def _lose_one(driver: "subprocess.Popen[str]") -> None:
    """Kill a replica, and wait until another replica replaces it."""
    before = set(workers("ServeReplica", driver.pid))
    assert len(before) == 2
    killed = before.pop()
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: len({*workers("ServeReplica", driver.pid)} - {killed}) == 2, driver)


def _wait_for_others(driver: "subprocess.Popen[str]") -> None:
    """Wait until two new replicas have replaced the current ones."""
    before = set(workers("ServeReplica", driver.pid))

    def are_others() -> bool:
        now = set(workers("ServeReplica", driver.pid))
        return len(now) == 2 and not now & before

    wait_for(are_others, driver)


def test_a_torn_bundle_is_not_sent_to_anybody(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOOD, tmp_path / "model"))
    deployment = Deployment(
        folders={"model": folder}, replicas=Replicas(1, 1), limits=Limits(), tokens=Tokens()
    )
    assert deployment.application() is not None
    before = deployment.state
    (folder / "weights.safetensors").write_bytes(b"torn")
    assert deployment.state != before
    with pytest.raises(BundleError, match="model"):
        deployment.application()


@pytest.mark.parametrize("text", ["", "0", "8..2", "two", "1..2..3", "-1"])
def test_bounds_that_are_none(text: str) -> None:
    with pytest.raises(ValueRangeError, match="replicas"):
        Replicas.from_text(text)

"""A server under load that ends, reloads, or is overloaded: no accepted request is lost."""

import json
import shutil
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from tests.serving.conftest import GOOD, SECONDS, Server, serving

pytestmark = pytest.mark.slow

PREDICT = b"POST /v1/models/model/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: "


class Load:
    """Clients that send one request after another until they are stopped or their connection is
    refused.
    """

    def __init__(self, server: Server, number: int, *, inputs: int = 1) -> None:
        self._server, self._inputs = server, inputs
        self.statuses: Counter[int] = Counter()
        self.versions: Counter[str] = Counter()
        self.outputs: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.delays: list[int] = []  # from Retry-After
        self.lost = 0
        self._lock, self._is_over = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(number)]

    @contextmanager
    def going(self) -> Iterator["Load"]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            for thread in self._threads:
                thread.join(SECONDS)
                assert not thread.is_alive()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                began = time.monotonic()
                response = self._server.predict("model", ["abc"] * self._inputs)
            except ConnectionRefusedError:
                return
            except OSError:  # the connection was closed before the server had read the request
                with self._lock:
                    self.lost += 1
                continue
            with self._lock:
                self.seconds.append(time.monotonic() - began)
                self.statuses[response.status] += 1
                if response.status == 503:
                    self.delays.append(int(response.headers["retry-after"]))
                if response.status == 200:
                    self.versions[response.data["version"]] += 1
                    self.outputs.update(one["output"] for one in response.data["answers"])

    def wait_for(self, number: int) -> None:
        """Wait until this number of further requests have been answered."""
        enough, end = sum(self.statuses.values()) + number, time.monotonic() + SECONDS
        while sum(self.statuses.values()) < enough:
            assert time.monotonic() < end
            time.sleep(0.02)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a bundle that a test may change."""
    return Path(shutil.copytree(GOOD, tmp_path / "model"))


def other_version(folder: Path) -> None:
    """Replace the bundle by another model with different answers."""
    task = load_bundle(folder)
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.mul_(0.5)
    save_bundle(task, folder)


def test_what_was_sent_before_the_end_is_answered(folder: Path, tmp_path: Path) -> None:
    """All requests that the server has received before the signal to end are answered."""
    body = json.dumps({"inputs": ["abcde" * 40] * 8}).encode()
    with serving(tmp_path, folder) as server, ExitStack() as stack:
        connections = [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
            )
            for _ in range(12)
        ]
        for connection in connections:
            connection.sendall(PREDICT + b"%d\r\n\r\n" % len(body) + body)
        end = time.monotonic() + SECONDS
        while server.metric("foveal_waiting_inputs") < 8:
            assert time.monotonic() < end, "nothing ever waited"
        server.process.send_signal(signal.SIGTERM)
        for connection in connections:
            found = b""
            while part := connection.recv(1 << 16):
                found += part
            assert found.startswith(b"HTTP/1.1 200")
            assert len(json.loads(found.partition(b"\r\n\r\n")[2])["answers"]) == 8
        assert server.process.wait(SECONDS) == 0


def test_it_ends_under_load_with_every_answer_whole(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, folder) as server, Load(server, 8).going() as load:
        load.wait_for(20)
        assert server.end() == 0
    assert set(load.statuses) <= {200, 503}
    assert load.statuses[200] >= 20


def test_a_folder_that_changes_is_loaded_anew_under_load(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, folder) as server, Load(server, 6).going() as load:
        load.wait_for(10)
        for _ in range(2):
            before = server.ask("/v1/models").data["models"][0]["version"]
            other_version(folder)
            end = time.monotonic() + SECONDS
            while server.ask("/v1/models").data["models"][0]["version"] == before:
                assert time.monotonic() < end
                time.sleep(0.1)
            load.wait_for(10)
        assert server.process.poll() is None
    assert set(load.statuses) == {200}
    assert load.lost == 0
    assert len(load.versions) == 3
    assert len(load.outputs) > 1


def test_sighup_loads_anew(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, folder) as server:
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + SECONDS
        while not server.metric('foveal_reloads_total{model="model",outcome="loaded"}'):
            assert time.monotonic() < end
            time.sleep(0.1)
        assert server.predict("model", ["abc"]).data["answers"][0]["output"] == "ABC"


@pytest.mark.parametrize("file", ["weights.safetensors", "vocabulary.json", "manifest.json"])
def test_a_tampered_bundle_is_refused_and_the_old_one_serves(
    folder: Path, tmp_path: Path, file: str
) -> None:
    with serving(tmp_path, folder) as server:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        end = time.monotonic() + SECONDS
        while server.ask("/v1/models").data["models"][0]["refused"] is None:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert server.predict("model", ["abc"]).data["answers"][0]["output"] == "ABC"
        assert "incomplete or damaged" in server.log.read_text()
        (folder / file).write_bytes(content)
        while server.ask("/v1/models").data["models"][0]["refused"] is not None:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_a_tampered_bundle_is_not_served_at_all(folder: Path, tmp_path: Path) -> None:
    (folder / "spec.json").write_bytes(b"{}")
    with pytest.raises(AssertionError, match="incomplete or damaged"), serving(tmp_path, folder):
        pass


def test_too_much_is_refused_and_it_recovers(folder: Path, tmp_path: Path) -> None:
    """Under overload, some requests are refused at once and the others are answered in bounded
    time.
    """
    with serving(tmp_path, folder, "--limits.waiting-seconds", "0.2") as server:
        with Load(server, 24, inputs=256).going() as load:
            load.wait_for(150)
            assert server.ask("/healthz").status == 200
        assert set(load.statuses) == {200, 503}
        assert server.metric('foveal_rejected_total{reason="overload"}') == load.statuses[503]
        assert min(load.delays) >= 1
        # The queue holds at most a fifth of a second of work; the rest is other load on the
        # machine.
        assert max(load.seconds) < 20
        assert server.metric("foveal_waiting_inputs") == 0
        assert server.predict("model", ["abc"]).status == 200


def test_what_nobody_waits_for_is_not_computed(folder: Path, tmp_path: Path) -> None:
    body = json.dumps({"inputs": ["abcde" * 60] * 200, "nbest": 16}).encode()
    with serving(tmp_path, folder) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
            connection.sendall(PREDICT + b"%d\r\n\r\n" % len(body) + body)
            end = time.monotonic() + SECONDS
            while not server.metric("foveal_waiting_inputs"):
                assert time.monotonic() < end
        while not server.metric("foveal_abandoned_total"):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert server.metric("foveal_waiting_inputs") == 0
        assert server.metric('foveal_batch_size_sum{model="model"}') < 200

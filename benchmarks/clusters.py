"""Ray clusters in separate processes, which are killed afterwards."""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

SECONDS = 240  # timeout of a start and of a job on a busy machine
# Attempts to start a cluster: Ray waits thirty seconds for a node, which may be too short on a busy machine.
_STARTS = 3
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
    # All clusters of this process share a token; a process with another token cannot use them.
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(),
}
_CLUSTER = """
import sys
from ray.cluster_utils import Cluster
store = {"object_store_memory": 200 << 20}
head = {"num_cpus": 0, "include_dashboard": False, **store}
cluster = Cluster(initialize_head=True, head_node_args=head)
nodes = [cluster.add_node(num_cpus=1, **store) for _ in range(2)]
print(cluster.address, flush=True)
sys.stdin.readline()
cluster.remove_node(nodes[0], allow_graceful=False)
if "replaced" in sys.argv:
    cluster.add_node(num_cpus=1, **store)
print("removed", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def process(
    words: list[str], more: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """Run Python with these arguments, and afterwards kill it with all its child processes."""
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


def wait_for(
    is_so: Callable[[], bool], running: "subprocess.Popen[str]", seconds: float = SECONDS
) -> None:
    """Wait until a condition holds, while a process runs."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        assert running.poll() is None, "it ended before it should"
        time.sleep(0.02)


def workers(name: str, session: int | None = None) -> list[int]:
    """List the Ray processes with this name in their title, of one session or of all sessions."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            command, pid = (path / "cmdline").read_bytes().decode(), int(path.name)
            if "ray::" in command and name in command and session in (None, os.getsid(pid)):
                found.append(pid)
    return found


class Nodes:
    """A cluster of two nodes with one core each, on this machine."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self._process, self._output = process, process.stdout
        self.address = self._output.readline().strip()  # empty if the cluster did not start

    def lose_one(self) -> None:
        """Kill a node and everything that runs on it."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        assert self._output.readline().strip() == "removed"


@contextlib.contextmanager
def nodes(*, are_replaced: bool) -> Iterator[Nodes]:
    """Start two nodes; if `are_replaced`, a lost node is replaced by a new one."""
    for _ in range(_STARTS):
        with process(["-c", _CLUSTER, "replaced" if are_replaced else "lost"]) as cluster:
            started = Nodes(cluster)
            if started.address:
                yield started
                return
    raise RuntimeError(
        f"Ray started no cluster of two nodes in {_STARTS} tries; see its words above."
    )

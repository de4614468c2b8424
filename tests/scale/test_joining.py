"""A cluster that foveal starts is closed to other machines and other users: its processes listen on the
loopback interface only, its files are in a private folder, and it requires a secret token.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
PROGRAM = """
import json, os
from pathlib import Path
from foveal.scale.cluster._joining import ray_cluster
import ray

with ray_cluster(num_cpus=1):
    ray.get(ray.remote(lambda: 1).remote())
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    processes = [os.getpid()]
    for process in processes:
        processes += children.get(process, [])
    sockets = set()
    for process in processes:
        try:
            sockets |= {os.readlink(one) for one in Path(f"/proc/{process}/fd").iterdir()}
        except OSError:
            continue
    listening = []
    for name in ("tcp", "tcp6"):
        for line in Path("/proc/net", name).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                listening.append(words[1].partition(":")[0])
    folder = Path(ray._private.worker._global_node.get_session_dir_path())
    modes = [oct(above.stat().st_mode & 0o777) for above in folder.parents[:2]]
    print(json.dumps([len(processes), listening, modes, os.environ["RAY_AUTH_MODE"], str(folder)]))
"""


def test_a_cluster_of_our_own_is_closed(tmp_path: Path) -> None:
    hidden = ("RAY_ADDRESS", "RAY_AUTH_TOKEN")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    number, listening, modes, mode, folder = json.loads(done.stdout.splitlines()[-1])
    assert number > 4
    assert len(listening) > 5
    assert {address for address in listening if address not in LOOPBACK} == set()
    assert "0o700" in modes  # around the folder that Ray makes public
    assert mode == "token"
    assert not (tmp_path / ".ray").exists()  # where Ray would write a world-readable token
    assert not Path(folder).exists()  # deleted with the cluster

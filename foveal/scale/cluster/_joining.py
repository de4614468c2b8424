"""Joining a Ray cluster, or starting a local one that lasts as long as the command."""

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray import LoggingConfig
from ray._private import ray_constants

_OBJECT_STORE = 300 << 20  # bytes, for a local cluster: it stores only the names of shards
_LOCAL = "local"
_LOOPBACK = "127.0.0.1"


@contextmanager
def ray_cluster(*, num_cpus: int | None = None) -> Iterator[None]:
    """Connect to Ray inside the block: to the cluster at RAY_ADDRESS or, without it, to a local one.

    A local cluster listens only on the loopback address, requires a token that is generated for this process,
    keeps its files private to this user, and runs no dashboard. Each worker computes with one thread, as everywhere
    in this package.
    """
    address = os.environ.get("RAY_ADDRESS", _LOCAL)
    if address != _LOCAL:
        with _initialized(address, {}):
            yield
        return
    _keep_to_this_machine()
    own = {
        "num_cpus": num_cpus,
        "include_dashboard": False,
        "object_store_memory": _OBJECT_STORE,
        "_node_ip_address": _LOOPBACK,
    }
    # Ray makes its folder readable for everyone. Its parent folder is private to this user. A umask would have the same
    # effect, but would also apply to the answers that workers write.
    with (
        TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        _initialized(address, {**own, "_temp_dir": f"{folder}/ray"}),
    ):
        yield


@contextmanager
def _initialized(address: str, own: dict[str, Any]) -> Iterator[None]:
    ray.init(
        address=address,
        logging_level=logging.ERROR,
        # Ray's messages would hide ours: it logs every plan, and a failed connection to a missing dashboard every
        # second. Errors are still shown.
        logging_config=LoggingConfig(log_level="ERROR"),
        runtime_env={"env_vars": {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}},
        **own,
    )
    try:
        yield
    finally:
        ray.shutdown()


def _keep_to_this_machine() -> None:
    """Make Ray use the loopback address for this machine, its default on macOS and Windows, and our own token instead
    of one that it would write into the home folder, readable by all.
    """
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"  # for the processes that Ray starts
    ray_constants.ENABLE_RAY_CLUSTER = False  # here
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

"""Joining a cluster, or making one of this machine's cores that lasts as long as the command."""

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

_OBJECT_STORE = 300 << 20  # bytes, of a cluster of our own: shards are named there, not held
_LOCAL = "local"
_LOOPBACK = "127.0.0.1"


@contextmanager
def ray_cluster(*, num_cpus: int | None = None) -> Iterator[None]:
    """Whatever runs inside can use Ray: the cluster of RAY_ADDRESS or, without it, one of this machine's.

    A cluster of our own listens on the loopback address only, asks for a token that is made for this
    process, keeps its files where no other user can read them, and shows no dashboard. Workers compute with
    one thread each, as everything does here.
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
    # Ray opens its folder to everybody. The one around it is this user's only. A umask would do the same, but
    # would hold for the answers that workers write, too.
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
        # Ray's own words would drown ours: every plan it makes and, without a dashboard, every second
        # that it cannot ask one. What goes wrong is an error, and shown.
        logging_config=LoggingConfig(log_level="ERROR"),
        runtime_env={"env_vars": {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}},
        **own,
    )
    try:
        yield
    finally:
        ray.shutdown()


def _keep_to_this_machine() -> None:
    """Have Ray take the loopback address for this machine's, which it does by itself on macOS and Windows, and
    a token of our own for the one that it would write into the home folder, readable by all.
    """
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"  # for the processes that Ray starts
    ray_constants.ENABLE_RAY_CLUSTER = False  # here
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

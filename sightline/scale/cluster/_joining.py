"""Joining a cluster, or making one of this machine's cores that lasts as long as the command."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray import LoggingConfig

_OBJECT_STORE = 300 << 20  # bytes, of a cluster of our own: shards are named there, not held
_LOCAL = "local"


@contextmanager
def joined(*, num_cpus: int | None = None) -> Iterator[None]:
    """Whatever runs inside can use Ray: the cluster of RAY_ADDRESS or, without it, one of this machine's.

    A cluster of our own shows no dashboard, and asks for a token as Ray does by default. Workers compute
    with one thread each, as everything does here.
    """
    address = os.environ.get("RAY_ADDRESS", _LOCAL)
    own = {
        "num_cpus": num_cpus,
        "include_dashboard": False,
        "object_store_memory": _OBJECT_STORE,
    }
    ray.init(
        address=address,
        logging_level=logging.ERROR,
        # Ray's own words would drown ours: every plan it makes and, without a dashboard, every second
        # that it cannot ask one. What goes wrong is an error, and shown.
        logging_config=LoggingConfig(log_level="ERROR"),
        runtime_env={"env_vars": {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}},
        **(own if address == _LOCAL else {}),
    )
    try:
        yield
    finally:
        ray.shutdown()

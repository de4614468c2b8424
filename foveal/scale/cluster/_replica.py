"""A replica: the complete server application, in a process that Ray Serve starts.

    Ray Serve's proxy  -- one request -->  replica: reads, queues, writes  -- a batch -->  computing process

A replica returns the same bytes as the server, on the same routes, with the same queue, limits and tokens. Ray
Serve routes requests, scales the number of replicas and restarts failed ones.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from fastapi import FastAPI
from ray import serve

from ...serving import Limits
from ...serving._engines import Engine
from ...serving.computing._process import Computing
from ...serving.server import build_app
from ...serving.server._tokens import Tokens
from ._bundles import unpacked


class Service(NamedTuple):
    """The models of a replica, with their limits and tokens."""

    bundles: Mapping[str, Mapping[str, bytes]]  # the files of every model
    limits: Limits
    tokens: Tokens  # digests: the tokens are not sent
    is_public: bool
    specs: Path | None = None  # a Python file with the parts that are not from foveal
    engine: Engine = "auto"
    device: str = "cpu"


@serve.ingress()
class Replica:
    """Models in a separate computing process, and the application in front of it."""

    def __init__(self, service: Service) -> None:
        computing = Computing(specs=service.specs, engine=service.engine, device=service.device)
        computing.watch(_end)
        with ExitStack() as folders:
            served = [
                computing.load(name, folders.enter_context(unpacked(files)))
                for name, files in service.bundles.items()
            ]
        # The folders are deleted before the application first checks them, so it never sees a change there: a new model
        # comes with a new replica.
        self._app = build_app(
            served,
            computing,
            limits=service.limits,
            tokens=service.tokens,
            is_public=service.is_public,
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Return the application of this replica; Ray Serve calls this method by name."""
        return self._app


def _end(status: int) -> None:
    """End the replica because its computing process has ended. Ray Serve then starts a new replica at once; it would
    need several health checks to notice that this one returns only 503.
    """
    os._exit(status or 1)

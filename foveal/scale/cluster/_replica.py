"""A replica: the application of the server on one machine, whole, in a process that Ray Serve starts.

    Ray Serve's proxy  -- one request -->  replica: reads, queues, writes  -- a batch -->  a process that computes

So a replica answers what the server answers, by the same routes and to the byte, with the same queue, limits
and tokens. Which replica is asked, how many there are and what becomes of one that dies is Ray Serve's part.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from fastapi import FastAPI
from ray import serve

from ...serving import Limits
from ...serving.computing._process import Computing
from ...serving.server import build_app
from ...serving.server._tokens import Tokens
from ._bundles import unpacked


class Service(NamedTuple):
    """What replicas serve, and to whom."""

    bundles: Mapping[str, Mapping[str, bytes]]  # the files of every model
    limits: Limits
    tokens: Tokens  # digests: the tokens themselves stay where they are
    is_public: bool
    specs: Path | None = None  # a Python file with the parts that are not from foveal


@serve.ingress()
class Replica:
    """Models in their own process that computes, and the application before it."""

    def __init__(self, service: Service) -> None:
        computing = Computing(specs=service.specs)
        computing.watch(_end)
        with ExitStack() as folders:
            served = [
                computing.load(name, folders.enter_context(unpacked(files)))
                for name, files in service.bundles.items()
            ]
        # The folders are gone before the application looks at them for the first time, and no change
        # is ever seen there: another model comes with another replica.
        self._app = build_app(
            served,
            computing,
            limits=service.limits,
            tokens=service.tokens,
            is_public=service.is_public,
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        """The application of this replica, which Ray Serve asks for by this name."""
        return self._app


def _end(status: int) -> None:
    """The process that computes has ended, and so does the replica: Ray Serve starts another at once, and
    would notice only after some checks that this one answers nothing but 503.
    """
    os._exit(status or 1)

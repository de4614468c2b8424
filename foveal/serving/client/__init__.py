"""Synchronous and asynchronous clients of the server.

Requires `foveal[client]`.
"""

from ...extras import require as _require

_require("client", "httpx2", needed_by="The client")

from ._answers import ServerError as ServerError
from ._async_client import AsyncClient as AsyncClient
from ._client import Client as Client
from ._requests import Retries as Retries

"""The server: models by name over HTTP, safe to expose to the internet.

Requires `foveal[serve]`. Start it with `foveal serve runs/x`.
"""

from ...extras import require as _require

_require("serve", "fastapi", "uvicorn", "prometheus_client", needed_by="The server")

from ._app import build_app as build_app
from ._server import serve as serve

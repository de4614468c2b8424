"""The explorer: a local page to query a model, see its attention, and override its decisions.

Requires `foveal[serve]`. Start it with `foveal explore runs/x`.
"""

from ..extras import require as _require

_require("serve", "fastapi", "uvicorn", needed_by="The explorer")

from ._app import build_app as build_app
from ._server import serve as serve

"""The explorer: a page on this machine where you ask a model, see what it looked at, and change its mind.

Needs `foveal[serve]`. `foveal explore runs/x` is the usual way in.
"""

from ..extras import require as _require

_require("serve", "fastapi", "uvicorn", needed_by="The explorer")

from ._app import build_app as build_app
from ._server import serve as serve

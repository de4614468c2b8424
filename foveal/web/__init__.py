"""Shared web code of the explorer and the server: headers, errors, sockets, assets, and questions about a run.

Requires `foveal[serve]`.
"""

from ..extras import require as _require

_require("serve", "fastapi", "uvicorn", needed_by="A page")

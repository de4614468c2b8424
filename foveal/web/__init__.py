"""What the explorer and the server share: headers, errors, sockets, assets, and questions about a run.

Needs `foveal[serve]`.
"""

from ..extras import require as _require

_require("serve", "fastapi", "uvicorn", needed_by="A page")

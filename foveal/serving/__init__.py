"""Serving: one predictor for the command line, bulk jobs and the server.

`foveal.serving.server` is the server (requires `foveal[serve]`), `foveal.serving.client` is its Python client
(requires `foveal[client]`).
"""

from ._limits import Limits as Limits
from ._predictor import Predictor as Predictor

"""Serving: a predictor that the command line, bulk jobs and a server ask alike.

`foveal.serving.server` is the server (needs `foveal[serve]`), `foveal.serving.client` asks it
from Python (needs `foveal[client]`).
"""

from ._limits import Limits as Limits
from ._predictor import Predictor as Predictor

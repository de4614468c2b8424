"""Serving: a predictor that the command line, bulk jobs and a server ask alike.

`sightline.serving.server` is the server (needs `sightline[serve]`), `sightline.serving.client` asks it
from Python (needs `sightline[client]`).
"""

from ._answer import answer_json as answer_json
from ._limits import Limits as Limits
from ._predictor import Predictor as Predictor, Questions as Questions

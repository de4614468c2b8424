"""The explorer: a page on this machine alone where a model is asked, looked into and second-guessed.

Needs `sightline[serve]`. `sightline explore runs/x` is the usual way in.
"""

from . import _packages as _packages  # first: it says which package is missing
from ._app import build_app as build_app
from ._runs import ServedRun as ServedRun, load_runs as load_runs
from ._server import serve as serve

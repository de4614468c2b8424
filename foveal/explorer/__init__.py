"""The explorer: a page on this machine alone where a model is asked, looked into and second-guessed.

Needs `foveal[serve]`. `foveal explore runs/x` is the usual way in.
"""

from . import _packages as _packages  # first: it says which package is missing
from ._app import build_app as build_app
from ._guard import (
    HEADERS as HEADERS,
    error_response as error_response,
    read_body as read_body,
    replayed as replayed,
)
from ._page import Asset as Asset, assets as assets, assets_of as assets_of
from ._question import (
    Question as Question,
    QuestionError as QuestionError,
    check_length as check_length,
    read_question as read_question,
    said as said,
)
from ._runs import ServedRun as ServedRun, load_runs as load_runs
from ._server import listening as listening, serve as serve

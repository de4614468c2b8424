"""Views: render plain data as SVG and HTML, with one shared theme."""

from ..extras import require as _require

_require("toolkit", "jinja2", "PIL", "regex", needed_by="foveal.views")


from ._arcs import arcs as arcs
from ._beam import beam_tree as beam_tree
from ._chain import chain as chain
from ._colored_text import colored_text as colored_text
from ._curves import Series as Series, curves as curves
from ._grid import grid as grid
from ._heatmap import heatmap as heatmap
from ._overlay import overlay as overlay
from ._page import Section as Section, page as page
from ._parallel import (
    ParallelAxis as ParallelAxis,
    ParallelLine as ParallelLine,
    parallel as parallel,
)
from ._sentences import sentences as sentences
from ._tables import (
    heads_table as heads_table,
    hypotheses_table as hypotheses_table,
    series_table as series_table,
    weights_table as weights_table,
)
from ._theme import Theme as Theme
from ._vector_field import vector_field as vector_field

"""Views: plain data to drawings, and drawings to a page."""

from ._arcs import arcs as arcs
from ._beam import Hypothesis as Hypothesis, beam_tree as beam_tree
from ._chain import chain as chain
from ._curves import Point as Point, Series as Series, Tick as Tick, curves as curves
from ._drawing import drawing as drawing, drawing_table as drawing_table
from ._heatmap import heatmap as heatmap
from ._ink import Ink as Ink
from ._overlay import overlay as overlay
from ._page import Section as Section, page as page
from ._parallel import (
    ParallelAxis as ParallelAxis,
    ParallelLine as ParallelLine,
    parallel as parallel,
)
from ._png import data_uri as data_uri
from ._render import render as render
from ._sentences import sentences as sentences, words_of as words_of
from ._tables import (
    MOST_CELLS as MOST_CELLS,
    Table as Table,
    heads_table as heads_table,
    hypotheses_table as hypotheses_table,
    series_table as series_table,
    weights_table as weights_table,
)
from ._text import (
    bounded as bounded,
    named as named,
    note_width as note_width,
    number as number,
    short as short,
    width as width,
)
from ._theme import DARK as DARK, LIGHT as LIGHT, Theme as Theme, tone as tone

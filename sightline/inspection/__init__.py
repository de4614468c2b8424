"""Views: plain data to drawings, and drawings to a page.

Every view is a function from an `AttentionTrace`, or from small values defined here, to an SVG string
that stands alone: light and dark, with a title, a description and every number as hover text. `page`
puts drawings and tables into one HTML file that opens offline.
"""

from ._arcs import arcs as arcs
from ._beam import Hypothesis as Hypothesis, beam_tree as beam_tree
from ._chain import chain as chain
from ._curves import Series as Series, curves as curves
from ._heatmap import heatmap as heatmap
from ._overlay import overlay as overlay
from ._page import Section as Section, page as page
from ._sentences import sentences as sentences
from ._tables import (
    Table as Table,
    heads_table as heads_table,
    hypotheses_table as hypotheses_table,
    series_table as series_table,
    weights_table as weights_table,
)

"""Attention: score -> distribute -> read. `Memory` in, `Attended` out.

The named attentions are functions that fill the three slots of `Attention`. You can replace every part
with a custom one.
"""

from ._additive import additive_scores as additive_scores
from ._attention import Attended as Attended, Attention as Attention
from ._biaffine import BiaffineLabeler as BiaffineLabeler, BiaffineScorer as BiaffineScorer
from ._copy import PointerGenerator as PointerGenerator
from ._distribute import per_query as per_query
from ._hard import (
    hard_attention as hard_attention,
    marginal_log_likelihood as marginal_log_likelihood,
)
from ._hierarchical import (
    HierarchicalAttention as HierarchicalAttention,
    sentences_memory as sentences_memory,
)
from ._memory import Layout as Layout, Memory as Memory, grid_memory as grid_memory
from ._multi_head import MultiHead as MultiHead
from ._named import (
    head_selection_attention as head_selection_attention,
    k_step_attention as k_step_attention,
    local_attention as local_attention,
    monotone_attention as monotone_attention,
    path_attention as path_attention,
    segment_attention as segment_attention,
    shift_attention as shift_attention,
    sigmoid_attention as sigmoid_attention,
    softmax_attention as softmax_attention,
    sparsemax_attention as sparsemax_attention,
    spatial_attention as spatial_attention,
    syntactic_attention as syntactic_attention,
)
from ._pooling import (
    AttentionPooling as AttentionPooling,
    max_pooling as max_pooling,
    mean_pooling as mean_pooling,
)
from ._readers import (
    AbstractReader as AbstractReader,
    ExpectedValue as ExpectedValue,
    Selection as Selection,
)
from ._scorers import (
    AbstractScorer as AbstractScorer,
    AdditiveScorer as AdditiveScorer,
    BilinearScorer as BilinearScorer,
    DotScorer as DotScorer,
    LinearScorer as LinearScorer,
    scaled_dot_scorer as scaled_dot_scorer,
)
from ._trace import (
    AttentionTrace as AttentionTrace,
    sentences_trace as sentences_trace,
    trace_of as trace_of,
)
from .history._coverage import CoverageScorer as CoverageScorer, coverage_loss as coverage_loss

"""Alignments of words as an answer, from what a model attends to, and their scores."""

from ...metrics._alignment_scores import (
    AlignmentScores as AlignmentScores,
    alignment_scores as alignment_scores,
)
from ._forced_attention import forced_traces as forced_traces
from ._symmetrization import symmetrize as symmetrize
from ._word_alignment import Aligned as Aligned, align as align

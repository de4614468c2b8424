"""Metrics of outputs with confidence intervals, calibration, reliability and slices; independent of models."""

from ..extras import require as _require

_require("toolkit", "jiwer", "rapidfuzz", "sacrebleu", needed_by="foveal.metrics")


from ._alignment_scores import alignment_scores as alignment_scores
from ._attachment import attachment_score as attachment_score
from ._calibration import Calibration as Calibration
from ._cider import cider as cider
from ._diversity import distinct_n as distinct_n
from ._intervals import compare as compare, measure as measure
from ._metric_spec import AbstractMetricSpec as AbstractMetricSpec
from ._metrics import (
    accuracy as accuracy,
    bleu as bleu,
    character_error_rate as character_error_rate,
    chrf as chrf,
    exact_match as exact_match,
    f1 as f1,
    length_to_failure as length_to_failure,
    perplexity as perplexity,
    span_f1 as span_f1,
    spans as spans,
    word_error_rate as word_error_rate,
)
from ._reliability import reliability as reliability, risk_coverage as risk_coverage
from ._rouge import rouge as rouge
from ._statistics import Statistics as Statistics

"""Graphs that score labels: the tags of words, and the classes of a text.

    tagging          unary = W encoder(tokens) + b; the runtime adds the transitions between tags and searches
    classification   log p(class) = log_softmax( W pool(memory) + b )

Axes: B items, S positions, F spelling features of a word, K tags, C classes, V width of a value.
"""

from dataclasses import asdict
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from ..data import Example
from ..errors import ExportError
from ..metrics._calibration import Calibration
from ..models import AbstractClassifierSpec, AbstractTaggerSpec, ClassifierSpec, TaggerSpec
from ..specs import to_data
from ..tasks import Classification, ClassificationSpec, PredictionSpec, Tagging, TaggingSpec
from ._models import task_graph, text_source
from ._settings import MAX_SOURCE, task_settings
from .graphs._attentions import attention_graph
from .graphs._encoders import emit_encoder
from .graphs._graph import FLOAT, INT64, Graph, Value, axes, linear, op, size, squeeze, unsqueeze
from .graphs._memory import MemoryGraph, Source, mean_of
from .graphs._refusal import refusal
from .graphs._weights import Weights

_NEVER = float("-inf")


class Classified(NamedTuple):
    """Scores of the classes, and the weights behind them."""

    log_probs: Value  # (B, C)
    weights: Value | None  # (B, S)


@task_graph.register
def _(spec: TaggingSpec, weights: Weights) -> Graph:
    graph = Graph("tagger")
    source = text_source(graph)
    if spec.spelling is not None:
        shape = ["B", "S", spec.spelling.num_features]
        source = source._replace(spelling=graph.input("spelling", INT64, shape))
    graph.output("unary", emit_tagger(spec.model, weights, source), FLOAT, ["B", "S", "K"])
    return graph


@task_graph.register
def _(spec: ClassificationSpec, weights: Weights) -> Graph:
    graph = Graph("classifier")
    found = emit_classifier(spec.model, weights, text_source(graph))
    graph.output("log_probs", found.log_probs, FLOAT, ["B", "C"])
    if found.weights is not None:
        graph.output("weights", found.weights, FLOAT, ["B", "S"])
    return graph


@singledispatch
def emit_tagger(spec: AbstractTaggerSpec, weights: Weights, source: Source) -> Value:
    """Score the tags of every word; register a function for a tagger of your own.

    Args:
        spec: Spec of the tagger.
        weights: Weights of the tagger.
        source: Words, their spelling, their number and their mask.

    Returns:
        Scores `(B, S, K)`, of any value on padding.

    Raises:
        ExportError: There is no graph for this kind of tagger.
    """
    del weights, source
    raise refusal("tagger", spec)


@emit_tagger.register
def _(spec: TaggerSpec, weights: Weights, source: Source) -> Value:
    memory = emit_encoder(spec.encoder, weights.at("encoder"), source)
    return linear(memory.values, weights["unary.weight"], weights["unary.bias"])


def crf_of(task: Tagging) -> dict[str, Any] | None:
    """Return the scores of neighboring tags, which are not in the graph of a tagger.

    Args:
        task: Task of the tagger.

    Returns:
        `transitions`, a row for each tag and a column for the tag after it, and `start` and `end`, a score for each tag
        of the first and the last word, or None; None for a tagger whose tags are independent.

    Raises:
        ExportError: The scores depend on the sentence.
    """
    with task.answering():
        chain = task.taggings(task.collate([task.encode_source(Example("a"))]))
    parts = {"transitions": chain.transitions, "start": chain.start, "end": chain.end}
    for (name, scores), num_axes in zip(parts.items(), (2, 1, 1), strict=True):
        if scores is not None and scores.ndim != num_axes:
            raise ExportError(
                f"{name} of the tags: expected one table for all sentences, got shape {tuple(scores.shape)}. Train a "
                f"tagger with shared {name}, for example TaggerSpec."
            )
    if not any(scores is not None and scores.any() for scores in parts.values()):
        return None
    return {name: None if each is None else each.tolist() for name, each in parts.items()}


@task_settings.register
def _(task: Tagging) -> dict[str, Any]:
    spelling = task.spec.spelling
    return {
        **_settings_of_text(task.spec, task.prediction, task.calibration),
        "spelling": None if spelling is None else to_data(spelling),
        "attention": None,
        "crf": crf_of(task),
    }


@task_settings.register
def _(task: Classification) -> dict[str, Any]:
    return {
        **_settings_of_text(task.spec, task.prediction, task.calibration),
        "attention": task.spec.model.attention_kind,
    }


def _settings_of_text(
    spec: TaggingSpec | ClassificationSpec, prediction: PredictionSpec, calibration: Calibration
) -> dict[str, Any]:
    """Return the settings of a task that labels texts."""
    return {
        "task": spec.kind,
        "source": to_data(spec.source),
        "target": None,
        "features": None,
        "prediction": asdict(prediction),
        "calibration": calibration.to_data(),
        "max_source": MAX_SOURCE,
    }


@singledispatch
def emit_classifier(spec: AbstractClassifierSpec, weights: Weights, source: Source) -> Classified:
    """Score the classes of every text; register a function for a classifier of your own.

    Args:
        spec: Spec of the classifier.
        weights: Weights of the classifier.
        source: Tokens, their number and their mask.

    Returns:
        Log-probabilities of the classes and, with attention, the weights of the positions.

    Raises:
        ExportError: There is no graph for this kind of classifier.
    """
    del weights, source
    raise refusal("classifier", spec)


@emit_classifier.register
def _(spec: ClassifierSpec, weights: Weights, source: Source) -> Classified:
    if spec.reads_documents or spec.reads_trees:
        raise refusal("encoder", spec.encoder)
    memory = emit_encoder(spec.encoder, weights.at("encoder"), source)
    vectors, read = _pooled(spec, weights.at("pool"), memory)
    scores = linear(vectors, weights["output.weight"], weights["output.bias"])
    return Classified(op("LogSoftmax", scores, axis=-1), read)


def _pooled(
    spec: ClassifierSpec, weights: Weights, memory: MemoryGraph
) -> tuple[Value, Value | None]:
    """Return one vector for each text `(B, V)` and, with attention, the weights `(B, S)`."""
    match spec.pooling:
        case "summary":
            return memory.summary, None
        case "mean":
            return mean_of(memory.values, memory.real), None
        case "max":
            return _max_of(memory), None
        case attention:
            query = weights["query"]
            graph = attention_graph(attention, weights.at("attention.scorer"), len(query))
            shape = op("Concat", size(memory.values, 0), axes(1, len(query)), axis=0)
            queries = op("Expand", query, shape)
            scores = graph.scorer.scores(queries, graph.scorer.keys(memory.values))
            read = graph.distribute(scores, queries, memory.real)  # (B, 1, S)
            return squeeze(read @ memory.values, 1), squeeze(read, 1)


def _max_of(memory: MemoryGraph) -> Value:
    """Return the largest value of each coordinate over the real positions `(B, V)`; 0 if there are none."""
    values = op("Where", unsqueeze(memory.real, 2), memory.values, _NEVER)
    highest = op("ReduceMax", values, axes(1), keepdims=0)
    return op("Where", op("IsInf", highest), np.float32(0.0), highest)

"""The graph of a whole task, by its spec.

Axes: B items, S positions.
"""

from functools import singledispatch

from ..errors import ExportError
from ..tasks import PredictionSpec, TransductionSpec
from ..tasks._specs import TaskSpec
from .graphs._decoders import decoder_graph
from .graphs._decoding_steps import DecoderGraph
from .graphs._encoders import emit_encoder, lengths_mask
from .graphs._graph import INT32, INT64, Graph
from .graphs._memory import MemoryGraph, Source
from .graphs._recurrent_decoders import copies_of
from .graphs._refusal import refusal
from .graphs._search import emit_search, search_settings
from .graphs._weights import Weights


@singledispatch
def task_graph(spec: TaskSpec, weights: Weights) -> Graph:
    """Return the graph of a task: inputs in, answers out.

    Args:
        spec: Spec of the task.
        weights: Weights of the model.

    Returns:
        The graph.

    Raises:
        ExportError: A part of the model has no graph.
    """
    del weights
    raise refusal("task", spec)


@task_graph.register
def _(spec: TransductionSpec, weights: Weights) -> Graph:
    check_search(spec.prediction)
    graph = Graph("search")
    source, settings = text_source(graph), search_settings(graph)
    memory, decoder = transducer_parts(spec, weights, source)
    emit_search(graph, decoder, memory, settings)
    return graph


def transducer_parts(
    spec: TransductionSpec, weights: Weights, source: Source
) -> tuple[MemoryGraph, DecoderGraph]:
    """Encode a text, and return the memory and the decoder that reads it."""
    if spec.model.reads_documents:
        raise refusal("encoder", spec.model.encoder)
    memory = emit_encoder(spec.model.encoder, weights.at("encoder"), source)
    decoder = decoder_graph(spec.model.decoder, weights.at("decoder"))
    if spec.model.decoder.copies:
        # Source and target share their ids; those of features follow.
        memory = memory._replace(tokens=copies_of(source.tokens, decoder.num_tokens))
    return memory, decoder


def text_source(graph: Graph) -> Source:
    """Declare the inputs of a text."""
    tokens = graph.input("tokens", INT64, ["B", "S"])
    lengths = graph.input("lengths", INT32, ["B"])
    return Source(tokens, lengths, lengths_mask(lengths, tokens))


def check_search(settings: PredictionSpec) -> None:
    """Raise `ExportError` for settings of a search that no graph has."""
    if settings.no_repeat_ngram:
        raise ExportError(
            f"prediction.no_repeat_ngram has no export yet, expected 0, got {settings.no_repeat_ngram}. Set it to 0: "
            f"--set prediction.no_repeat_ngram=0."
        )
    if settings.inventory:
        raise ExportError(
            f"prediction.inventory has no export yet, expected none, got {len(settings.inventory)} tokens. Train without "
            f"it, and pass --inventory to foveal lexicon."
        )

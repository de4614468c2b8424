"""The graph of any decoder, by its spec."""

from functools import singledispatch

from ...models import DecoderSpec, LatentHardSpec, LatentMonotoneSpec, TransformerDecoderSpec
from ...models.parts._decoder_spec import AbstractDecoderSpec
from ._decoding_steps import DecoderGraph
from ._latent import LatentDecoderGraph
from ._recurrent_decoders import RecurrentDecoderGraph
from ._refusal import refusal
from ._transformer_decoder import TransformerDecoderGraph
from ._weights import Weights


@singledispatch
def decoder_graph(spec: AbstractDecoderSpec, weights: Weights) -> DecoderGraph:
    """Return the graph of a decoder; register a function for a decoder of your own.

    Args:
        spec: Spec of the decoder.
        weights: Weights of the decoder.

    Returns:
        The graph.

    Raises:
        ExportError: There is no graph for this kind of decoder.
    """
    del weights
    raise refusal("decoder", spec)


@decoder_graph.register
def _(spec: DecoderSpec, weights: Weights) -> DecoderGraph:
    if isinstance(spec.attention, LatentHardSpec | LatentMonotoneSpec):
        return LatentDecoderGraph(spec, spec.attention, weights)
    return RecurrentDecoderGraph(spec, weights)


@decoder_graph.register
def _(spec: TransformerDecoderSpec, weights: Weights) -> DecoderGraph:
    return TransformerDecoderGraph(spec, weights)

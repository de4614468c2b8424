"""Text encoders as graphs.

Axes: B items, S positions, V width of a value.
"""

from functools import singledispatch

import numpy as np

from ...errors import ExportError
from ...models import (
    ConvolutionalEncoderSpec,
    TextEncoderSpec,
    TransformerEncoderSpec,
    WordEncoderSpec,
)
from ...models.parts._encoder_spec import AbstractEncoderSpec
from ._graph import Value, axes, linear, op, ops, size
from ._memory import MemoryGraph, Source, mean_of, without_padding
from ._recurrent import emit_stack
from ._refusal import refusal
from ._transformer import emit_layers, layer_norm
from ._weights import Weights


@singledispatch
def emit_encoder(spec: AbstractEncoderSpec, weights: Weights, source: Source) -> MemoryGraph:
    """Encode a source; register a function for an encoder of your own.

    Args:
        spec: Spec of the encoder.
        weights: Weights of the encoder.
        source: Tokens, their number and their mask.

    Returns:
        The memory.

    Raises:
        ExportError: There is no graph for this kind of encoder.
    """
    del weights, source
    raise refusal("encoder", spec)


@emit_encoder.register
def _(spec: TextEncoderSpec, weights: Weights, source: Source) -> MemoryGraph:
    _check_plain(spec.self_attention)
    outputs, last = emit_stack(
        spec,
        weights.at("stack"),
        _embedded(weights, source),
        source.lengths,
        source.real,
        bidirectional=spec.bidirectional,
        initial=weights.at("initial") if spec.learned_state else None,
    )
    return MemoryGraph(outputs, last, source.real)


@emit_encoder.register
def _(spec: WordEncoderSpec, weights: Weights, source: Source) -> MemoryGraph:
    _check_plain(spec.self_attention)
    values = without_padding(_embedded(weights, source), source.real)
    return MemoryGraph(values, mean_of(values, source.real), source.real)


@emit_encoder.register
def _(spec: ConvolutionalEncoderSpec, weights: Weights, source: Source) -> MemoryGraph:
    vectors = _embedded(weights, source)
    rows = linear(vectors, weights["project.weight"], weights["project.bias"])
    for number in range(spec.num_layers):
        layer = weights.at(f"layers.{number}")
        found = _convolved(spec, layer, rows, source.real, 2**number if spec.dilated else 1)
        rows = rows + found if spec.residual else found
    values = without_padding(layer_norm(rows, weights.at("norm")), source.real)
    return MemoryGraph(values, mean_of(values, source.real), source.real)


@emit_encoder.register
def _(spec: TransformerEncoderSpec, weights: Weights, source: Source) -> MemoryGraph:
    rows = emit_layers(spec, weights, _embedded(weights, source), source.real)
    values = without_padding(layer_norm(rows, weights.at("norm")), source.real)
    return MemoryGraph(values, mean_of(values, source.real), source.real)


def _embedded(weights: Weights, source: Source) -> Value:
    """Return the vectors of the tokens `(B, S, E)`, joined with those of their spelling features."""
    if source.spelling is None:
        return op("Gather", weights["embedding.weight"], source.tokens)
    words = op("Gather", weights["embedding.words.weight"], source.tokens)
    features = op("Gather", weights["embedding.features.weight"], source.spelling)
    return op("Concat", words, op("Reshape", features, axes(0, 0, -1)), axis=-1)


def _convolved(
    spec: ConvolutionalEncoderSpec, weights: Weights, rows: Value, real: Value, distance: int
) -> Value:
    """Return the output of one convolution, without its residual connection."""
    normed = without_padding(layer_norm(rows, weights.at("norm")), real)
    reach = distance * (spec.kernel_size // 2)
    around = op("Pad", normed, axes(0, reach, 0, 0, reach, 0), 0.0)
    end = size(rows, 1)
    shifts = range(0, 2 * reach + 1, distance) if reach else range(1)
    parts = [op("Slice", around, axes(start), end + axes(start), axes(1)) for start in shifts]
    joined = op("Concat", *parts, axis=-1) if len(parts) > 1 else parts[0]
    scores = linear(joined, weights["window.weight"], weights["window.bias"])
    if not spec.gated:
        return op("Relu", scores)
    values, gates = ops("Split", scores, outputs=2, axis=-1, num_outputs=2)
    return values * op("Sigmoid", gates)


def _check_plain(self_attention: object | None) -> None:
    if self_attention is not None:
        raise ExportError(
            "encoder.self_attention has no export yet, expected none. Train the model with "
            "--set encoder.self_attention=none, or with the encoder transformer."
        )


def lengths_mask(lengths: Value, tokens: Value) -> Value:
    """Return True on real positions `(B, S)`."""
    positions = op("Cast", op("Range", 0, op("Squeeze", size(tokens, 1)), 1), to=6)  # int32
    return op("Less", positions, op("Unsqueeze", lengths, np.array([1])))

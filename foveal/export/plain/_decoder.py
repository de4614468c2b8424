"""The decoder in a plain model file.

Axes: E width of an embedding, H width of a state, G of its gates, U of the vector before the output layer, W tokens.
"""

from functools import singledispatch

import numpy as np

from ...models import DecoderSpec, SegmentSpec
from ...models.parts._attention_specs import AttentionSpec
from ...models.parts._decoder_spec import AbstractDecoderSpec
from ..graphs._advance import Advance
from ..graphs._outputs import output_table
from ..graphs._weights import Weights
from ._attention import (
    SEGMENT,
    attention_number,
    scorer_number,
    scorer_weights,
    write_scorer,
)
from ._encoder import CELLS
from ._refusal import plain_refusal, setting_refusal
from ._writer import Writer

_BRIDGES = ("initial_state", "every_step", "both", "learned", "none")
_FIRST_STATES = {"initial_state": "bridge", "both": "bridge.initial"}


@singledispatch
def write_decoder(spec: AbstractDecoderSpec, weights: Weights, writer: Writer) -> None:
    """Write the settings and the weights of a decoder.

    Args:
        spec: Spec of the decoder.
        weights: Weights of the decoder.
        writer: Where to write.

    Raises:
        ExportError: Plain model files do not have this kind of decoder.
    """
    del weights, writer
    raise plain_refusal("decoder", spec)


@write_decoder.register
def _(spec: DecoderSpec, weights: Weights, writer: Writer) -> None:
    refused = {"point": spec.point, "coverage": spec.coverage}
    for name in (name for name, is_set in refused.items() if is_set):
        raise setting_refusal(f"decoder.{name}", "false")
    if spec.shift:
        raise setting_refusal("decoder.shift", "0")
    advance = Advance(spec, weights)
    _write_settings(spec, weights, advance, writer)
    _write_stack(advance, writer)
    _write_bridge(spec, weights, writer)
    if spec.attention is not None:
        _write_attention(spec, spec.attention, weights, writer)
    _write_output(spec, weights, writer)


def _write_settings(spec: DecoderSpec, weights: Weights, advance: Advance, writer: Writer) -> None:
    kind, scorer, hidden_size = 0, 0, 0
    if spec.attention is not None:
        kind, scorer_spec = attention_number(spec.attention)
        scorer, hidden_size = scorer_number(scorer_spec, scorer_weights(spec.attention, weights))
    writer.u8(CELLS.index(advance.stack.kind))
    writer.u32(spec.embedding_size, spec.hidden_size, spec.num_layers)
    writer.u8(spec.residual, spec.skip, _BRIDGES.index(spec.bridge), kind, scorer)
    writer.u32(hidden_size)
    has_table = advance.token_table is not None
    before = spec.attend == "before"
    writer.u8(
        before, spec.deep_output, spec.input_feeding, spec.tie_embeddings, spec.copy, has_table
    )


def _write_stack(advance: Advance, writer: Writer) -> None:
    """Write the embedding and the layers."""
    spec, table = advance.spec, advance.token_table
    of_token, of_bridge, of_context = advance.parts
    if table is None or spec.deep_output:
        writer.matrix(advance.weights["embedding.weight"])
    if table is not None:
        writer.matrix(table)
    else:
        _, bias = advance.stack.first_gates()
        writer.matrix(of_token)
        writer.vector(writer.rounded(bias))
    for part in (of_bridge, of_context):
        if part.shape[1]:
            writer.matrix(part)
    is_gru = advance.stack.kind == "gru"
    for number in range(spec.num_layers):
        cell = advance.weights.at(f"stack.layers.{number}.fused")
        if number > 0:
            writer.matrix(cell["weight_ih_l0"])
            bias = cell["bias_ih_l0"] + (0 if is_gru else cell["bias_hh_l0"])
            writer.vector(writer.rounded(bias))
        writer.matrix(cell["weight_hh_l0"])
        if is_gru:
            writer.vector(writer.rounded(cell["bias_hh_l0"]))


def _write_bridge(spec: DecoderSpec, weights: Weights, writer: Writer) -> None:
    """Write what the first state of the layers follows from."""
    parts = ("hidden", "memory") if spec.cell == "lstm" else ("hidden",)
    for number in range(spec.num_layers):
        for part in parts:
            if spec.bridge == "learned":
                first = weights[f"bridge.{part}.{number}"]
                writer.vector(writer.rounded(np.tanh(first) if part == "hidden" else first))
            elif spec.bridge in _FIRST_STATES:
                linear = weights.at(f"{_FIRST_STATES[spec.bridge]}.{part}.{number}")
                writer.matrix(linear["weight"])
                writer.vector(writer.rounded(linear["bias"]))


def _write_attention(
    spec: DecoderSpec, attention: AttentionSpec, weights: Weights, writer: Writer
) -> None:
    number, scorer = attention_number(attention)
    write_scorer(scorer, scorer_weights(attention, weights), spec.hidden_size, writer)
    if number == SEGMENT:
        assert isinstance(attention, SegmentSpec)
        writer.f32(*weights["attention.scorer.transitions"].ravel().tolist())
        writer.f32(attention.total or 0.0)
    if spec.attend == "after":
        both = weights["combine.weight"]
        split = both.shape[1] - spec.hidden_size
        writer.matrix(both[:, :split])
        writer.matrix(both[:, split:])


def _write_output(spec: DecoderSpec, weights: Weights, writer: Writer) -> None:
    if spec.deep_output:
        writer.matrix(weights["deep.weight"])
        writer.vector(writer.rounded(weights["deep.bias"]))
    if not spec.tie_embeddings:
        writer.matrix(output_table(weights))
    writer.vector(writer.rounded(weights["output.bias"]))
    if spec.copy:
        gate = weights.at("copying")
        writer.matrix(gate["score.weight"])
        writer.f32(*gate["score.bias"].tolist())

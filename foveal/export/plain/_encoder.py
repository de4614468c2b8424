"""The encoder in a plain model file.

Axes: E width of an embedding, H width of a state, G of its gates, D of the input of a layer.
"""

from functools import singledispatch

import numpy as np

from ...models import TextEncoderSpec
from ...models.parts._encoder_spec import AbstractEncoderSpec
from ..graphs._recurrent import cell_kind
from ..graphs._weights import Weights
from ._refusal import plain_refusal
from ._writer import Writer

CELLS = ("lstm", "gru", "elman")


@singledispatch
def write_encoder(spec: AbstractEncoderSpec, weights: Weights, writer: Writer) -> None:
    """Write the settings and the weights of an encoder.

    Args:
        spec: Spec of the encoder.
        weights: Weights of the encoder.
        writer: Where to write.

    Raises:
        ExportError: Plain model files do not have this kind of encoder.
    """
    del weights, writer
    raise plain_refusal("encoder", spec)


@write_encoder.register
def _(spec: TextEncoderSpec, weights: Weights, writer: Writer) -> None:
    if spec.self_attention is not None:
        raise plain_refusal("self-attention of the encoder", spec.self_attention)
    kind = cell_kind(spec, "encoder")
    writer.u8(CELLS.index(kind))
    writer.u32(spec.embedding_size, spec.hidden_size, spec.num_layers)
    writer.u8(spec.bidirectional, spec.residual, spec.skip, spec.learned_state)
    writer.matrix(weights["embedding.weight"])
    for number in range(spec.num_layers):
        _write_layer(spec, kind, weights, number, writer)


def _write_layer(
    spec: TextEncoderSpec, kind: str, weights: Weights, number: int, writer: Writer
) -> None:
    """Write both directions of a layer, which are one tensor of the graph."""
    names = ("forward_cell.fused", "backward_cell.fused") if spec.bidirectional else ("fused",)
    cells = [weights.at(f"stack.layers.{number}.{name}") for name in names]
    of_input = writer.together([cell["weight_ih_l0"] for cell in cells])
    of_state = writer.together([cell["weight_hh_l0"] for cell in cells])
    biases = np.stack([np.concatenate([cell["bias_ih_l0"], cell["bias_hh_l0"]]) for cell in cells])
    biases = writer.rounded(biases, axis=1)
    for direction in range(len(cells)):
        writer.stored(of_input[direction])
        writer.stored(of_state[direction])
        input_bias, state_bias = np.split(biases[direction], 2)
        if kind == "gru":
            writer.vector(input_bias)
            writer.vector(state_bias)
        else:
            writer.vector(input_bias + state_bias)
        if spec.learned_state:
            for first in _first_states(kind, weights.at("initial"), number):
                halves = np.stack(np.split(first, len(cells)))[:, None]
                writer.vector(writer.rounded(halves, axis=1)[direction, 0])


def _first_states(kind: str, initial: Weights, number: int) -> list[np.ndarray]:
    states = [np.tanh(initial[f"hidden.{number}"])]
    return [*states, initial[f"memory.{number}"]] if kind == "lstm" else states

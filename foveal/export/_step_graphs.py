"""The encoder and one step of the decoder as two graphs, for a search of your own: sampling, constraints, ensembles.

    encode   tokens, lengths                        -> kept.*, state.*
    step     kept.*, state.*, last, number          -> log_probs, weights, next.*

`encode` runs once for each source and gives the memory `kept.*` and the first state of the decoder `(B, ...)`. `step`
feeds the last token of every hypothesis `(B, K)` to states `(B, K, ...)`, and gives the log-probabilities of the next token
`(B, K, W)`, the attention weights `(B, K, S)`, and the states after the step. `number` counts the earlier steps.

Axes: B items, K hypotheses of each, S positions, W tokens of the vocabulary.
"""

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import NamedTuple

import onnx
from onnx import helper, shape_inference

from ..tasks import TransductionSpec
from ..tasks._specs import TaskSpec
from ._models import text_source, transducer_parts
from .graphs._graph import FLOAT, INT64, OPSET, Graph, Value
from .graphs._refusal import refusal
from .graphs._weights import Weights


class StepGraphs(NamedTuple):
    """Both graphs of a model."""

    encode: onnx.ModelProto
    step: onnx.ModelProto


class _Type(NamedTuple):
    """The type of a tensor, with None for axes whose size is not fixed."""

    dtype: int
    shape: Sequence[int | None]


@singledispatch
def step_graphs(spec: TaskSpec, weights: Weights) -> StepGraphs:
    """Return the encoder and one step of the decoder of a task as graphs.

    Args:
        spec: Spec of the task.
        weights: Weights of the model.

    Returns:
        The graphs.

    Raises:
        ExportError: The task does not write a text step by step, or a part of the model has no graph.
    """
    del weights
    raise refusal("task", spec)


@step_graphs.register
def _(spec: TransductionSpec, weights: Weights) -> StepGraphs:
    encode = Graph("encode")
    memory, decoder = transducer_parts(spec, weights, text_source(encode))
    started = decoder.start(memory)
    found = {f"kept.{name}": value for name, value in started.kept.items()}
    found |= {f"state.{name}": value for name, value in started.state.items()}
    types = _types_of(encode, found)
    for name, value in found.items():
        encode.output(name, value, *types[name])

    step = Graph("step")
    kept = {name: step.input(f"kept.{name}", *types[f"kept.{name}"]) for name in started.kept}
    state = {
        name: step.input(f"state.{name}", dtype, [*shape[:1], None, *shape[1:]])
        for name in started.state
        for dtype, shape in (types[f"state.{name}"],)
    }
    last, number = step.input("last", INT64, ["B", "K"]), step.input("number", INT64, [])
    stepped = decoder.step(kept, state, last, number)
    step.output("log_probs", stepped.log_probs, FLOAT, ["B", "K", decoder.num_tokens])
    if stepped.weights is not None:
        step.output("weights", stepped.weights, FLOAT, ["B", "K", "S"])
    for name, value in stepped.state.items():
        dtype, shape = types[f"state.{name}"]
        step.output(f"next.{name}", value, dtype, [None] * (len(shape) + 1))
    return StepGraphs(encode.model(), step.model())


def _types_of(graph: Graph, values: Mapping[str, Value]) -> dict[str, _Type]:
    """Return the types of the values of an unfinished graph."""
    proto = graph.proto()
    proto.output.extend(
        helper.make_empty_tensor_value_info(name) for name in {v.name for v in values.values()}
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)])
    inferred = shape_inference.infer_shapes(model).graph
    infos = {each.name: each for each in (*inferred.input, *inferred.value_info, *inferred.output)}
    return {name: _type(infos[value.name]) for name, value in values.items()}


def _type(info: onnx.ValueInfoProto) -> _Type:
    tensor = info.type.tensor_type
    sizes = (each.dim_value or None for each in tensor.shape.dim)
    return _Type(tensor.elem_type, (None, *[*sizes][1:]))

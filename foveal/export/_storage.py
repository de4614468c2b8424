"""Small files with the same arithmetic: weights are stored in 16 or 8 bits and converted to float32 when a model loads.

    half    w stored as float16
    int8    w stored as round( w / scale ) in 8 bits, scale = max |w| / 127 of each output of a matrix or row of a table

Arithmetic stays in float32, so an answer does not depend on the other inputs of its batch. In 8-bit arithmetic it would,
because the activations of a batch share one scale. The conversions are in the outermost graph, where ONNX Runtime
computes them once.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Storage: TypeAlias = Literal["float32", "half", "int8"]
LEAST = 256  # smaller tensors are not worth a conversion


def stored(model: onnx.ModelProto, storage: Storage) -> onnx.ModelProto:
    """Return a model whose weights are stored in fewer bits.

    Args:
        model: Model with float32 weights, all in the outermost graph.
        storage: How to store them.

    Returns:
        A model with the same inputs and outputs.
    """
    if storage == "float32":
        return model
    small = onnx.ModelProto()
    small.CopyFrom(model)
    tables = set(_tables(small.graph))
    nodes, tensors = list[onnx.NodeProto](), list[onnx.TensorProto]()
    for tensor in small.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype != np.float32 or array.size < LEAST or not np.isfinite(array).all():
            tensors.append(tensor)
        elif storage == "half":
            _store_half(tensor.name, array, nodes, tensors)
        else:
            _store_int8(tensor.name, array, tensor.name in tables, nodes, tensors)
    others = list(small.graph.node)
    del small.graph.node[:], small.graph.initializer[:]
    small.graph.node.extend([*nodes, *others])
    small.graph.initializer.extend(tensors)
    onnx.checker.check_model(small, full_check=True)
    return small


def _store_half(
    name: str, array: np.ndarray, nodes: list[onnx.NodeProto], tensors: list[onnx.TensorProto]
) -> None:
    tensors.append(numpy_helper.from_array(array.astype(np.float16), f"{name}_half"))
    nodes.append(helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT))


def _store_int8(
    name: str,
    array: np.ndarray,
    is_table: bool,
    nodes: list[onnx.NodeProto],
    tensors: list[onnx.TensorProto],
) -> None:
    numbers, scale = int8_of(array, 0 if is_table or array.ndim == 1 else _output_axis(array))
    tensors.append(numpy_helper.from_array(numbers, f"{name}_int8"))
    tensors.append(numpy_helper.from_array(scale, f"{name}_scale"))
    # Not DequantizeLinear: ONNX Runtime would compute it in every run.
    nodes.append(helper.make_node("Cast", [f"{name}_int8"], [f"{name}_wide"], to=TensorProto.FLOAT))
    nodes.append(helper.make_node("Mul", [f"{name}_wide", f"{name}_scale"], [name]))


def int8_of(array: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Round an array to 8 bits.

    Args:
        array: Weights.
        axis: Axis of the outputs or rows, each of which has a scale.

    Returns:
        The integers, and the scales in a shape that broadcasts over them.
    """
    others = tuple(each for each in range(array.ndim) if each != axis % array.ndim)
    largest = np.abs(array).max(others, keepdims=True)
    scale = (np.maximum(largest, 1e-12) / 127).astype(np.float32)
    return np.round(array / scale).astype(np.int8), scale


def _output_axis(array: np.ndarray) -> int:
    """Return the axis of the outputs: columns of a matrix, rows of the weights (directions, G, D) of an LSTM, and the
    first axis of a convolution (outputs, inputs, height, width).
    """
    return {3: 1, 4: 0}.get(array.ndim, array.ndim - 1)


def _tables(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield the names of the tensors that are looked up row by row."""
    for node in graph.node:
        if node.op_type == "Gather":
            yield node.input[0]
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _tables(attribute.g)

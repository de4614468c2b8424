"""ONNX graphs as expressions: values have operators, and a node belongs to the innermost graph of its inputs.

    g = Graph("step")
    x = g.input("x", FLOAT, ["N", 4])
    g.output("y", op("Tanh", x @ weight + bias), FLOAT, ["N", 3])

Numpy arrays and numbers are constants. All constants are in the outermost graph, each array once. A node in the
body of a `Loop` or `Scan` whose inputs are all outside of the body is outside too, so it is computed only once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, INT32, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.BOOL,
)
# The oldest opset with ReduceMax over axes as an input and with Split into equal parts; runtimes since 2023 read it.
OPSET, IR_VERSION = 18, 8
Shape: TypeAlias = Sequence[int | str | None] | None


@final
class Graph:
    """A graph under construction.

    Args:
        name: Name of the graph.
        outer: The graph whose node has this graph as its body.
    """

    def __init__(self, name: str, outer: "Graph | None" = None) -> None:
        self.outer, self.depth, self._num_bodies = outer, 0, 0
        self.name = name
        if outer is not None:
            outer._num_bodies += 1
            self.name, self.depth = f"{name}{outer._num_bodies}", outer.depth + 1
        self._nodes = list[onnx.NodeProto]()
        self._inputs, self._outputs = list[onnx.ValueInfoProto](), list[onnx.ValueInfoProto]()
        self._constants = dict[tuple[str, tuple[int, ...], bytes], str]()
        self._initializers = list[onnx.TensorProto]()

    def input(self, name: str, dtype: int, shape: Shape) -> "Value":
        """Declare an input.

        Args:
            name: Name of the input.
            dtype: Element type, such as `FLOAT`.
            shape: Sizes, or names of sizes that vary.

        Returns:
            The input.
        """
        name = self._unique(name)
        self._inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return Value(self, name)

    def output(self, name: str, value: "Operand", dtype: int, shape: Shape) -> None:
        """Declare an output.

        Args:
            name: Name of the output.
            value: The output, or a constant.
            dtype: Element type, such as `FLOAT`.
            shape: Sizes, or names of sizes that vary.
        """
        name = self._unique(name)
        self.add(helper.make_node("Identity", [self.name_of(value)], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def add(self, node: onnx.NodeProto) -> None:
        """Append a node.

        Args:
            node: A node whose inputs exist.
        """
        self._nodes.append(node)

    def new_name(self, kind: str, part: int) -> str:
        """Return a new name for an output of the next node.

        Args:
            kind: Operator of the node.
            part: Number of the output.

        Returns:
            A name that the model does not have yet.
        """
        return self._unique(f"{kind}{len(self._nodes)}.{part}")

    def name_of(self, value: "Operand") -> str:
        """Return the name of a value; a constant becomes an initializer of the outermost graph.

        Args:
            value: A value of this graph or of an outer one, or a constant.

        Returns:
            The name.
        """
        if isinstance(value, Value):
            return value.name
        if self.outer is not None:
            return self.outer.name_of(value)
        array = constant(value)
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self._constants:
            name = f"constant{len(self._constants)}"
            self._constants[key] = name
            self._initializers.append(numpy_helper.from_array(array, name))
        return self._constants[key]

    def proto(self) -> onnx.GraphProto:
        """Finish the graph.

        Returns:
            The graph as a message of ONNX.
        """
        return helper.make_graph(
            self._nodes, self.name, self._inputs, self._outputs, self._initializers
        )

    def model(self) -> onnx.ModelProto:
        """Finish the graph and check it.

        Returns:
            A model with this graph.
        """
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(self.proto(), opset_imports=opset, ir_version=IR_VERSION)
        model.producer_name = "foveal"
        onnx.checker.check_model(model, full_check=True)
        return model

    def _unique(self, name: str) -> str:
        """Return a name that no other graph of the model has: an inner name may not hide an outer one."""
        return name if self.outer is None else self.outer._unique(f"{self.name}/{name}")


@final
@dataclass(frozen=True, eq=False)
class Value:
    """The result of a node, or an input of a graph."""

    graph: Graph
    name: str

    # Otherwise numpy would take the arrays on the left of an operator apart.
    __array_ufunc__ = None

    def __add__(self, other: "Operand") -> "Value":
        return op("Add", self, other)

    def __radd__(self, other: "Operand") -> "Value":
        return op("Add", other, self)

    def __sub__(self, other: "Operand") -> "Value":
        return op("Sub", self, other)

    def __rsub__(self, other: "Operand") -> "Value":
        return op("Sub", other, self)

    def __mul__(self, other: "Operand") -> "Value":
        return op("Mul", self, other)

    def __rmul__(self, other: "Operand") -> "Value":
        return op("Mul", other, self)

    def __truediv__(self, other: "Operand") -> "Value":
        return op("Div", self, other)

    def __matmul__(self, other: "Operand") -> "Value":
        return op("MatMul", self, other)

    def __neg__(self) -> "Value":
        return op("Neg", self)


Operand: TypeAlias = Value | np.ndarray | np.generic | float | int | bool


def constant(value: Any) -> np.ndarray:
    """Return a constant as an array: float32 for floats, int64 for integers."""
    if isinstance(value, bool):
        return np.asarray(value)
    if isinstance(value, float):
        return np.asarray(value, np.float32)
    if isinstance(value, int):
        return np.asarray(value, np.int64)
    array = np.asarray(value)
    return np.ascontiguousarray(array) if array.ndim else array


def ops(kind: str, *inputs: Operand | None, outputs: int, **attributes: Any) -> tuple[Value, ...]:
    """Add a node with several outputs to the innermost graph of its inputs; None is an input that is left out."""
    graphs = [each.graph for each in inputs if isinstance(each, Value)]
    graph = max(graphs, key=lambda each: each.depth)
    names = tuple(graph.new_name(kind, part) for part in range(outputs))
    given = ["" if each is None else graph.name_of(each) for each in inputs]
    graph.add(helper.make_node(kind, given, names, **attributes))
    return tuple(Value(graph, name) for name in names)


def op(kind: str, *inputs: Operand | None, **attributes: Any) -> Value:
    """Add a node with one output to the innermost graph of its inputs.

    Args:
        kind: An operator of ONNX.
        *inputs: Values and constants; None is an input that is left out.
        **attributes: Attributes of the operator.

    Returns:
        The output.
    """
    return ops(kind, *inputs, outputs=1, **attributes)[0]


def linear(values: Value, weight: np.ndarray, bias: np.ndarray | None = None) -> Value:
    """Compute W x + b for a weight with a row for each output, as torch stores it."""
    product = values @ weight.T
    return product if bias is None else product + bias


def log(value: Value) -> Value:
    """Compute the logarithm of each element.

    ONNX Runtime's operators Log and Softplus round the last elements of a tensor differently, so a result would depend on
    the other items of the batch. The log-sum over an axis of size 1 does not.
    """
    return op("ReduceLogSum", op("Unsqueeze", value, axes(-1)), axes(-1), keepdims=0)


def softplus(value: Value) -> Value:
    """Compute log(1 + exp(x)), with the same result in every batch."""
    return op("Relu", value) + log(1.0 + op("Exp", -op("Abs", value)))


def axes(*numbers: int) -> np.ndarray:
    """Return axes, or any list of integers, as an input of a node."""
    return np.array(numbers, np.int64)


def unsqueeze(value: Value, *places: int) -> Value:
    """Insert axes of size 1."""
    return op("Unsqueeze", value, axes(*places))


def squeeze(value: Value, *places: int) -> Value:
    """Remove axes of size 1."""
    return op("Squeeze", value, axes(*places))


def size(value: Value, axis: int) -> Value:
    """Return the size of an axis, as a list of one integer."""
    return op("Shape", value, start=axis, end=axis + 1)


def places(value: Value, axis: int) -> Value:
    """Return 0, 1, 2, ... for each position of an axis."""
    return op("Range", 0, squeeze(size(value, axis), 0), 1)

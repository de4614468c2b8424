"""Recurrent stacks: whole sequences with ONNX's LSTM, GRU and RNN, and single steps.

    sequence   LSTM( x, W, R, b, lengths ): padding gives 0, and the last state is the state at the length
    step       the cell written out, because a decoder's step also reads its attention

torch orders the gates of an LSTM i, f, g, o and ONNX i, o, f, g; torch has r, z, n for a GRU and ONNX z, r, n.

Axes: B items, S positions, H width of a state, G of its gates, D of an input; a step has any leading axes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from ...errors import ExportError
from ...models.parts._recurrent_spec import AbstractRecurrentSpec
from ._graph import Value, axes, linear, op, ops
from ._weights import Weights


class _Kind(NamedTuple):
    """A cell with an operator in ONNX: its name there, the order of its gates there, and their number in torch."""

    operator: str
    order: tuple[int, ...]
    has_memory: bool = False


_KINDS: Mapping[str, _Kind] = {
    "lstm": _Kind("LSTM", (0, 3, 1, 2), has_memory=True),
    "gru": _Kind("GRU", (1, 0, 2)),
    "elman": _Kind("RNN", (0,)),
}


def cell_kind(spec: AbstractRecurrentSpec, owner: str) -> str:
    """Return the name of a cell that has an operator in ONNX; raise `ExportError` for another one."""
    kind = spec.cell if isinstance(spec.cell, str) else spec.cell.kind
    if kind not in _KINDS:
        raise ExportError(
            f"{owner}.cell {kind} has no export, expected one of {', '.join(_KINDS)}. Train the model with such a "
            f"cell: --set {owner}.cell=lstm."
        )
    return kind


class Encoded(NamedTuple):
    """The outputs of the top layer over a sequence, 0 on padding, and its last hidden state."""

    outputs: Value  # (B, S, H)
    last: Value  # (B, H)


def emit_stack(
    spec: AbstractRecurrentSpec,
    weights: Weights,
    inputs: Value,
    lengths: Value,
    real: Value,
    *,
    bidirectional: bool,
    initial: Weights | None = None,
    owner: str = "encoder",
) -> Encoded:
    """Run all layers of a stack over padded sequences.

    Args:
        spec: Settings of the layers.
        weights: Weights of the stack.
        inputs: Vectors `(B, S, D)`.
        lengths: Numbers of real positions `(B)`, int32.
        real: True on real positions `(B, S)`.
        bidirectional: Whether every layer reads from both ends.
        initial: Weights of the learned initial states, if there are any.
        owner: Name of the part in messages.

    Returns:
        The outputs of the top layer and its last state.

    Raises:
        ExportError: The cell has no operator in ONNX.
    """
    kind = _KINDS[cell_kind(spec, owner)]
    mask = op("Unsqueeze", op("Cast", real, to=1), axes(2))
    bottom = below = inputs * mask
    last = below
    for number in range(spec.num_layers):
        layer = weights.at(f"layers.{number}")
        reads = below if number == 0 or not spec.skip else op("Concat", below, bottom, axis=-1)
        first = None if initial is None else _first_states(initial, number, kind)
        outputs, last = _layer(spec, kind, layer, reads, lengths, bidirectional, first)
        below = _joined(spec, number, below, outputs, weights, bidirectional)
    return Encoded(below, last)


def _layer(
    spec: AbstractRecurrentSpec,
    kind: _Kind,
    weights: Weights,
    inputs: Value,
    lengths: Value,
    bidirectional: bool,
    first: Sequence[np.ndarray] | None,
) -> tuple[Value, Value]:
    """Return the outputs `(B, S, H)` of one layer and its last state `(B, H)`."""
    names = ("forward_cell.fused", "backward_cell.fused") if bidirectional else ("fused",)
    cells = [weights.at(name) for name in names]
    is_plain = kind.operator == "RNN"
    if (
        is_plain
    ):  # ONNX Runtime computes a single row by another kernel, so there is always a second one
        inputs, lengths = (
            op("Concat", part, op("Slice", part, axes(0), axes(1), axes(0)), axis=0)
            for part in (inputs, lengths)
        )
    of_input, of_state = (
        np.stack([_ordered(cell[f"weight_{part}_l0"], kind) for cell in cells])
        for part in ("ih", "hh")
    )
    biases = [[_ordered(cell[f"bias_{part}_l0"], kind) for part in ("ih", "hh")] for cell in cells]
    states: list[Value | None] = []
    for state in first or ():
        halves = np.stack(np.split(state, len(cells)))[:, None]
        shape = op("Concat", axes(len(cells)), op("Shape", lengths), axes(spec.hidden_size), axis=0)
        states.append(op("Expand", halves, shape))
    attributes = {"linear_before_reset": 1} if kind.operator == "GRU" else {}
    outputs, last = ops(
        kind.operator,
        op("Transpose", inputs, perm=[1, 0, 2]),
        of_input,
        of_state,
        np.stack([np.concatenate(pair) for pair in biases]),
        lengths,
        *states,
        outputs=2,
        hidden_size=spec.hidden_size,
        direction="bidirectional" if bidirectional else "forward",
        **attributes,
    )
    if is_plain:
        outputs = op("Slice", outputs, axes(0), axes(-1), axes(2))
        last = op("Slice", last, axes(0), axes(-1), axes(1))
    # (S, directions, B, H) -> (B, S, directions * H)
    outputs = op("Reshape", op("Transpose", outputs, perm=[2, 0, 1, 3]), axes(0, 0, -1))
    return outputs, op("Reshape", op("Transpose", last, perm=[1, 0, 2]), axes(0, -1))


def _first_states(initial: Weights, number: int, kind: _Kind) -> list[np.ndarray]:
    """Return the learned initial state of a layer: the hidden vector and, with memory, the cell."""
    states = [np.tanh(initial[f"hidden.{number}"])]
    return [*states, initial[f"memory.{number}"]] if kind.has_memory else states


def _ordered(gates: np.ndarray, kind: _Kind) -> np.ndarray:
    """Put the gates of a weight or bias into ONNX's order."""
    parts = np.split(gates, len(kind.order))
    return np.concatenate([parts[number] for number in kind.order])


def _joined(
    spec: AbstractRecurrentSpec,
    number: int,
    below: Value,
    outputs: Value,
    weights: Weights,
    bidirectional: bool,
) -> Value:
    """Add the residual connection around a layer, if it has one: its input must be as wide as its output."""
    if not spec.residual:
        return outputs
    layer = weights.at(f"layers.{number}.{'forward_cell.' if bidirectional else ''}fused")
    read = layer["weight_ih_l0"].shape[1]
    if spec.skip and number > 0:
        bottom = weights.at(f"layers.0.{'forward_cell.' if bidirectional else ''}fused")
        read -= bottom["weight_ih_l0"].shape[1]
    width = spec.hidden_size * (2 if bidirectional else 1)
    return below + outputs if read == width else outputs


@final
@dataclass(frozen=True)
class StackStep:
    """One step of a stack that reads forward.

    Args:
        spec: Settings of the layers.
        weights: Weights of the stack.
        owner: Name of the part in messages.
    """

    spec: AbstractRecurrentSpec
    weights: Weights
    owner: str = "decoder"

    @property
    def kind(self) -> str:
        """Name of the cell."""
        return cell_kind(self.spec, self.owner)

    @property
    def needs_inputs(self) -> bool:
        """Whether the layers read or add the input of the stack itself, not only its gates."""
        return self.spec.residual or (self.spec.skip and self.spec.num_layers > 1)

    def state_names(self) -> list[str]:
        """Return the names of the parts of a state, lowest layer first."""
        parts = ("hidden", "cell") if _KINDS[self.kind].has_memory else ("hidden",)
        return [f"{part}{layer}" for layer in range(self.spec.num_layers) for part in parts]

    def first_gates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights `(G, D)` and the bias of the input of the lowest layer."""
        cell = self.weights.at("layers.0.fused")
        bias = cell["bias_ih_l0"]
        if self.kind != "gru":  # whose reset gate multiplies the bias of the state
            bias = bias + cell["bias_hh_l0"]
        return cell["weight_ih_l0"], bias

    def step(
        self, gates: Value, state: Mapping[str, Value], inputs: Value | None
    ) -> tuple[Value, dict[str, Value]]:
        """Take one step.

        Args:
            gates: What the gates of the lowest layer get from its input, with its bias: `(..., G)`.
            state: State before the step, by name.
            inputs: Input of the stack `(..., D)`, if `needs_inputs`.

        Returns:
            The output of the top layer and the state after the step.
        """
        after = dict[str, Value]()
        below = inputs
        for number in range(self.spec.num_layers):
            cell = self.weights.at(f"layers.{number}.fused")
            if number > 0:
                assert below is not None
                reads = below
                if self.spec.skip:
                    assert inputs is not None
                    reads = op("Concat", below, inputs, axis=-1)
                bias = cell["bias_ih_l0"] + (0 if self.kind == "gru" else cell["bias_hh_l0"])
                gates = linear(reads, cell["weight_ih_l0"], bias)
            hidden = self._cell(number, cell, gates, state, after)
            below = hidden if below is None else self._joined(number, below, hidden)
        assert below is not None
        return below, after

    def _joined(self, number: int, below: Value, hidden: Value) -> Value:
        return _joined(self.spec, number, below, hidden, self.weights, bidirectional=False)

    def _cell(
        self,
        number: int,
        cell: Weights,
        gates: Value,
        state: Mapping[str, Value],
        after: dict[str, Value],
    ) -> Value:
        """Return the new hidden vector of one layer, and write the new state."""
        before, of_state = state[f"hidden{number}"], cell["weight_hh_l0"]
        if self.kind == "elman":
            hidden = op("Tanh", gates + linear(before, of_state))
        elif self.kind == "gru":
            mine = linear(before, of_state, cell["bias_hh_l0"])
            (reset_x, update_x, new_x), (reset_h, update_h, new_h) = (
                ops("Split", each, outputs=3, axis=-1, num_outputs=3) for each in (gates, mine)
            )
            reset, update = op("Sigmoid", reset_x + reset_h), op("Sigmoid", update_x + update_h)
            new = op("Tanh", new_x + reset * new_h)
            hidden = (1.0 - update) * new + update * before
        else:
            i, f, g, o = ops(
                "Split", gates + linear(before, of_state), outputs=4, axis=-1, num_outputs=4
            )
            memory = op("Sigmoid", f) * state[f"cell{number}"] + op("Sigmoid", i) * op("Tanh", g)
            hidden = op("Sigmoid", o) * op("Tanh", memory)
            after[f"cell{number}"] = memory
        after[f"hidden{number}"] = hidden
        return hidden

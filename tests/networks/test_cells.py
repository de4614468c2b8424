"""Cells match torch's modules, and the gates of an LSTM behave as the lectures describe."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from foveal.errors import ShapeError
from foveal.networks import (
    AbstractCell,
    CellState,
    ElmanCell,
    GRUCell,
    LSTMCell,
    RecurrentStack,
    init_forget_bias,
    initialize_orthogonal,
    initialize_uniform,
)

OPEN, SHUT = 1e3, -1e3


def lstm_with_gates(i: float, f: float, o: float = OPEN) -> LSTMCell:
    """Build an LSTM whose gates are fixed by their biases: the weights of the gates are 0."""
    cell = LSTMCell(2, 3)
    weight_input, weight_hidden, bias_input, bias_hidden = cell.fused.all_weights[0]
    with torch.no_grad():
        for bias, rows in ((i, slice(0, 3)), (f, slice(3, 6)), (o, slice(9, 12))):
            weight_input[rows], weight_hidden[rows] = 0.0, 0.0
            bias_input[rows], bias_hidden[rows] = bias, 0.0
    return cell


def written(cell: LSTMCell, inputs: Tensor, hidden: Tensor) -> Tensor:
    """Return the candidate values, g = tanh(Wg x + Ug h + bg)."""
    weight_input, weight_hidden, bias_input, bias_hidden = (
        part[6:9] for part in cell.fused.all_weights[0]
    )
    return torch.tanh(inputs @ weight_input.T + bias_input + hidden @ weight_hidden.T + bias_hidden)


@pytest.mark.parametrize(
    ("i", "f", "effect"),
    [(0, 1, "remember"), (1, 1, "add"), (0, 0, "erase"), (1, 0, "overwrite")],
)
def test_the_gate_table_of_the_lectures(i: int, f: int, effect: str) -> None:
    torch.manual_seed(0)
    cell = lstm_with_gates(OPEN if i else SHUT, OPEN if f else SHUT)
    inputs, hidden, memory = torch.randn(5, 2), torch.randn(5, 3), torch.randn(5, 3)
    new = written(cell, inputs, hidden)
    expected = {
        "remember": memory,
        "add": memory + new,
        "erase": torch.zeros_like(memory),
        "overwrite": new,
    }[effect]
    for after in (
        cell(inputs, CellState(hidden, memory)),
        cell.run(inputs.unsqueeze(1), CellState(hidden, memory)).state,
    ):
        assert after.cell is not None
        torch.testing.assert_close(after.cell, expected)
        torch.testing.assert_close(after.hidden, torch.tanh(expected))


def test_the_gradient_exercise_of_the_lectures() -> None:
    """With f = 1, i = 0 and no recurrent output, the gradient of the memory passes unchanged
    through any number of steps.
    """
    torch.manual_seed(1)
    cell = lstm_with_gates(SHUT, OPEN, o=SHUT)
    memory = torch.randn(4, 3, requires_grad=True)
    state = CellState(torch.randn(4, 3), memory)
    for _ in range(100):
        state = cell(torch.randn(4, 2), state)
    assert state.cell is not None
    incoming = torch.randn(4, 3)
    (gradient,) = torch.autograd.grad(state.cell, memory, incoming)
    assert torch.equal(gradient, incoming)


@pytest.mark.parametrize(
    ("cell", "module", "one_step"),
    [
        (ElmanCell, nn.RNN, nn.RNNCell),
        (GRUCell, nn.GRU, nn.GRUCell),
        (LSTMCell, nn.LSTM, nn.LSTMCell),
    ],
)
def test_a_cell_shares_its_weights_with_torch(
    cell: type[AbstractCell],
    module: Callable[..., nn.RNNBase],
    one_step: Callable[..., nn.RNNCellBase],
) -> None:
    torch.manual_seed(2)
    ours, theirs, stepper = cell(3, 4), module(3, 4, batch_first=True), one_step(3, 4)
    weights = theirs.state_dict()
    ours.load_state_dict({f"fused.{name}": value for name, value in weights.items()})
    stepper.load_state_dict({name.removesuffix("_l0"): part for name, part in weights.items()})
    inputs = torch.randn(2, 5, 3)
    expected, _ = theirs(inputs)
    torch.testing.assert_close(
        ours.run(inputs, ours.start([2])).outputs, expected, rtol=1e-5, atol=1e-5
    )
    state, their_state = ours.start([2]), None
    for t in range(5):
        state = ours(inputs[:, t], state)
        their_state = stepper(inputs[:, t], their_state)
        hidden = their_state[0] if isinstance(their_state, tuple) else their_state
        torch.testing.assert_close(state.hidden, hidden, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(state.hidden, expected[:, t], rtol=1e-5, atol=1e-5)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ShapeError, match="LSTMCell: inputs must have width 3, got 2"):
        LSTMCell(3, 4)(torch.zeros(1, 2), LSTMCell(3, 4).start([1]))
    with pytest.raises(ShapeError, match="got one without memory"):
        LSTMCell(3, 4)(torch.zeros(1, 3), CellState(torch.zeros(1, 4)))


def test_first_values_of_the_weights() -> None:
    stack = RecurrentStack([LSTMCell(3, 4), LSTMCell(4, 4)])
    biases = {name: part for name, part in stack.named_parameters() if "bias_ih" in name}
    assert all((bias[4:8] == 1).all() for bias in biases.values())
    initialize_uniform(stack, 0.05)
    assert all((part.abs() <= 0.05).all() for part in stack.parameters())
    init_forget_bias(stack)
    assert all((bias[4:8] == 1).all() for bias in biases.values())
    initialize_orthogonal(stack)
    for name, part in stack.named_parameters():
        if "weight_hh" in name:
            for gate in part.split(4):
                torch.testing.assert_close(gate @ gate.T, torch.eye(4), rtol=0, atol=1e-5)

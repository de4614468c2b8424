"""Stacks match torch's multi-layer modules and packed sequences, with any mask."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from foveal.errors import ShapeError, ValueRangeError
from foveal.networks import (
    AbstractCell,
    ElmanCell,
    GRUCell,
    LSTMCell,
    RecurrentStack,
    recurrent_stack,
)
from foveal.networks.recurrent._bidirectional import Bidirectional

MODULES: dict[type[AbstractCell], Callable[..., nn.RNNBase]] = {
    ElmanCell: nn.RNN,
    GRUCell: nn.GRU,
    LSTMCell: nn.LSTM,
}


def assert_near(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def load(stack: RecurrentStack, module: nn.RNNBase) -> None:
    """Copy the weights of torch's module into our stack."""
    weights = iter(module.all_weights)
    with torch.no_grad():
        for layer in stack.layers_in_order():
            cells = [layer]
            if isinstance(layer, Bidirectional):
                cells = [layer.forward_cell, layer.backward_cell]
            for cell in cells:
                for ours, theirs in zip(cell.parameters(), next(weights), strict=True):
                    ours.copy_(theirs)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", MODULES)
def test_a_stack_equals_torch_on_packed_sequences(
    cell: type[AbstractCell], bidirectional: bool
) -> None:
    torch.manual_seed(0)
    theirs = MODULES[cell](3, 4, num_layers=2, batch_first=True, bidirectional=bidirectional)
    ours = recurrent_stack(3, 4, cell=cell, num_layers=2, bidirectional=bidirectional)
    load(ours, theirs)
    inputs, lengths = torch.randn(3, 6, 3), torch.tensor([6, 2, 4])
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, last = theirs(packed)
    expected, _ = pad_packed_sequence(outputs, batch_first=True)
    ran = ours(inputs, torch.arange(6) < lengths.unsqueeze(-1))
    assert_near(ran.outputs, expected)
    parts = last if isinstance(last, tuple) else (last,)
    for number, state in enumerate(ran.state):
        for found, part in zip((p for p in state if p is not None), parts, strict=True):
            by_layer = part.unflatten(0, (2, -1))[number]  # (directions, B, H)
            assert_near(found, torch.cat(list(by_layer), -1))


def stack_of(cell: type[AbstractCell], **options: bool) -> RecurrentStack:
    return recurrent_stack(4, 4, cell=cell, num_layers=3, **options)


@pytest.mark.parametrize(
    "options", [{}, {"residual": True}, {"skip": True}, {"bidirectional": True}]
)
@pytest.mark.parametrize("cell", MODULES)
def test_what_the_mask_leaves_out_is_skipped(
    cell: type[AbstractCell], options: dict[str, bool]
) -> None:
    """An item with holes gives the same result as the sequence of its real positions."""
    torch.manual_seed(1)
    stack, inputs = stack_of(cell, **options), torch.randn(5, 6, 4)
    mask = torch.tensor(
        [[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 1, 0], [0] * 6]
    ).bool()
    ran = stack(inputs.masked_fill(~mask.unsqueeze(-1), torch.nan), mask)
    assert not ran.outputs[~mask].any()
    for item in range(4):
        alone = stack(inputs[item, mask[item]])
        assert_near(ran.outputs[item, mask[item]], alone.outputs)
        for found, expected in zip(ran.state, alone.state, strict=True):
            assert_near(found.hidden[item], expected.hidden)
            if found.cell is not None and expected.cell is not None:
                assert_near(found.cell[item], expected.cell)
    assert not any(state.hidden[4].any() for state in ran.state)


@pytest.mark.parametrize("options", [{}, {"residual": True}, {"skip": True, "residual": True}])
@pytest.mark.parametrize("cell", MODULES)
def test_a_stack_equals_its_steps(cell: type[AbstractCell], options: dict[str, bool]) -> None:
    torch.manual_seed(2)
    stack, inputs = stack_of(cell, **options), torch.randn(2, 3, 5, 4)
    ran, state = stack(inputs), stack.start([2, 3])
    for t in range(5):
        output, state = stack.step(inputs[:, :, t], state)
        assert_near(output, ran.outputs[:, :, t])
    for found, expected in zip(state, ran.state, strict=True):
        assert_near(found.hidden, expected.hidden)
    again = stack(inputs, state=ran.state)
    assert_near(again.outputs[:, :, 0], stack.step(inputs[:, :, 0], state).output)


def test_residual_and_skip_are_what_they_say() -> None:
    torch.manual_seed(3)
    inputs = torch.randn(2, 5, 4)
    stack = recurrent_stack(4, 4, num_layers=2, residual=True)
    low, high = stack.layers_in_order()
    first = inputs + low.run(inputs, low.start([2])).outputs
    assert_near(stack(inputs).outputs, first + high.run(first, high.start([2])).outputs)
    stack = recurrent_stack(4, 3, num_layers=2, skip=True)
    low, high = stack.layers_in_order()
    first = torch.cat([low.run(inputs, low.start([2])).outputs, inputs], -1)
    assert_near(stack(inputs).outputs, high.run(first, high.start([2])).outputs)


def test_a_deep_residual_stack_passes_gradients_on() -> None:
    """In twelve Elman layers the gradient of the input vanishes, unless there are residual
    connections.
    """
    torch.manual_seed(4)
    reached = []
    for residual in (False, True):
        stack = recurrent_stack(8, 8, cell=ElmanCell, num_layers=12, residual=residual)
        inputs = torch.randn(4, 5, 8, requires_grad=True)
        stack(inputs).outputs.sum().backward()
        assert inputs.grad is not None
        reached.append(inputs.grad.norm().item())
    assert reached[1] > 100 * reached[0]


def test_dropout_is_between_layers_only() -> None:
    torch.manual_seed(5)
    inputs = torch.randn(2, 5, 4)
    deep, flat = (
        recurrent_stack(4, 4, num_layers=2, dropout=0.5),
        recurrent_stack(4, 4, dropout=0.5),
    )
    assert not torch.equal(deep(inputs).outputs, deep(inputs).outputs)
    assert torch.equal(flat(inputs).outputs, flat(inputs).outputs)
    deep.eval()
    assert torch.equal(deep(inputs).outputs, deep(inputs).outputs)


def test_float64_and_gradients_by_finite_differences() -> None:
    torch.manual_seed(6)
    stack = recurrent_stack(2, 2, bidirectional=True).double()
    mask = torch.tensor([[True, False, True], [False, True, True]])
    inputs = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: stack(x, mask).outputs, inputs)
    torch.autograd.gradcheck(lambda x: stack(x, mask).state[0].cell, inputs)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ShapeError, match="inputs must have width 3, got 2"):
        recurrent_stack(3, 4)(torch.zeros(1, 5, 2))
    stack = recurrent_stack(3, 4, bidirectional=True)
    with pytest.raises(ValueRangeError, match="bidirectional=False"):
        stack.step(torch.zeros(1, 3), stack.start([1]))
    with pytest.raises(ShapeError, match="layer 1 must have input_size 7, got 4"):
        RecurrentStack([LSTMCell(3, 4), LSTMCell(4, 4)], skip=True)
    with pytest.raises(ValueRangeError, match="at least 1, got 0"):
        recurrent_stack(3, 4, num_layers=0)

"""Lie-access memory: a hand-written loop over its equations, heads that move and jump, and refused sizes and states."""

import math

import pytest
import torch

from foveal.errors import ShapeError, ValueRangeError
from foveal.models import LieAccessCellSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.networks import CellState, LieAccessCell
from foveal.specs import with_setting

ROWS, WIDTH, SMALL = 4, 2, 1e-3


def sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))


def moved(key: list[float], asked: list[float]) -> list[float]:
    """Move a head with Python numbers."""
    new, shift, gate = asked[:2], asked[2:4], sigmoid(asked[4])
    return [
        gate * n + (1 - gate) * k + math.tanh(s) for n, k, s in zip(new, key, shift, strict=True)
    ]


def test_outputs_equal_a_loop_over_the_equations() -> None:
    torch.manual_seed(0)
    cell = LieAccessCell(3, 4, num_rows=ROWS, row_size=WIDTH).double()
    inputs = torch.randn(6, 3).double()  # more steps than rows: the oldest are lost
    write_key = read_key = [0.0, 0.0]
    memory: list[tuple[list[float], float, list[float]]] = []
    controlled, vector, expected = cell.controller.start([]), torch.zeros(WIDTH).double(), []
    weights: list[float] = []
    for value in inputs:
        controlled = cell.controller(torch.cat([value, vector]), controlled)
        asked = cell.write(controlled.hidden).tolist()
        write_key = moved(write_key, asked)
        read_key = moved(read_key, cell.read(controlled.hidden).tolist())
        memory.insert(0, (write_key, sigmoid(asked[5]), [math.tanh(a) for a in asked[6:]]))
        memory = memory[:ROWS]
        scores = [strength / (math.dist(read_key, key) ** 2 + SMALL) for key, strength, _ in memory]
        weights = [score / sum(scores) for score in scores]
        vector = sum(
            (w * torch.tensor(v).double() for w, (*_, v) in zip(weights, memory, strict=True)),
            start=torch.zeros(WIDTH).double(),
        )
        expected.append(cell.output(torch.cat([controlled.hidden, vector])))
    found = cell.run(inputs.unsqueeze(0), cell.start([1]))
    torch.testing.assert_close(found.outputs[0], torch.stack(expected), rtol=1e-5, atol=1e-5)
    parts = cell.memory(found.state)
    keys = [key for key, *_ in memory]
    torch.testing.assert_close(parts.keys[0].tolist(), keys, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(parts.read_key[0].tolist(), read_key, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(parts.weights[0].tolist(), weights, rtol=1e-5, atol=1e-5)


def asks(cell: LieAccessCell, head: str, *numbers: float) -> None:
    """Make the controller ask a head for the same move at every step."""
    layer = cell.get_submodule(head)
    with torch.no_grad():
        for part in layer.parameters():
            part.zero_()
        layer.get_parameter("bias").copy_(torch.tensor(numbers))


def test_a_head_that_follows_the_writer_reads_the_newest_row_anywhere() -> None:
    cell = LieAccessCell(3, 4, num_rows=ROWS, row_size=WIDTH)
    asks(cell, "write", 0, 0, 50, 0, -50, 50, 50, -50)  # one to the right, append (1, -1)
    asks(cell, "read", 0, 0, 50, 0, -50)
    state = cell.start([1])
    assert cell.memory(state).weights.sum() == 0  # nothing to read yet
    for number in range(1, 7):
        state = cell(torch.zeros(1, 3), state)
        memory = cell.memory(state)
        assert memory.read_key.tolist() == [[number, 0]]
        assert memory.weights.argmax() == 0
    assert cell.memory(state).keys[0, :, 0].tolist() == [6, 5, 4, 3]
    asks(cell, "read", 4, 0, 0, 0, 50)  # jump back to a key
    state = cell(torch.zeros(1, 3), state)
    assert cell.memory(state).weights[0].argmax() == 3


def test_opposite_shifts_cancel() -> None:
    cell, state = LieAccessCell(3, 4, num_rows=ROWS, row_size=WIDTH), None
    for shift in (0.3, -0.3, 0.2, -0.2):
        asks(cell, "read", 0, 0, shift, -shift, -50)
        state = cell(torch.zeros(1, 3), cell.start([1]) if state is None else state)
    assert state is not None
    torch.testing.assert_close(cell.memory(state).read_key, torch.zeros(1, 2), atol=1e-6, rtol=0.0)


def test_more_rows_after_training_change_no_parameter() -> None:
    torch.manual_seed(0)
    small, large = (LieAccessCell(3, 4, num_rows=rows, row_size=WIDTH) for rows in (ROWS, 9))
    large.load_state_dict(small.state_dict())
    inputs = torch.randn(2, ROWS, 3)
    few, many = (cell.run(inputs, cell.start([2])).outputs for cell in (small, large))
    torch.testing.assert_close(few, many)


def test_settings_choose_the_memory() -> None:
    spec = with_setting(TextEncoderSpec(), "cell", "lie_access")
    spec = with_setting(spec, "cell.num_rows", "7")
    assert spec.cell == LieAccessCellSpec(num_rows=7)
    model = with_setting(Seq2SeqSpec(), "decoder.cell", "lie_access").build(
        source_vocabulary=9, target_vocabulary=7
    )
    tokens = torch.randint(9, (2, 5)), None, torch.randint(7, (2, 4))
    assert model(*tokens).log_probs.isfinite().all()


def test_wrong_sizes_and_states_are_refused() -> None:
    with pytest.raises(ValueRangeError, match="num_rows must be at least 1"):
        LieAccessCell(3, 4, num_rows=0)
    cell = LieAccessCell(3, 4, num_rows=ROWS, row_size=WIDTH)
    with pytest.raises(ShapeError, match="got 4"):
        cell(torch.zeros(1, 3), CellState(torch.zeros(1, 4), torch.zeros(1, 4)))

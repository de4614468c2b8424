"""The Neural Turing Machine: a hand-written loop over its equations, its heads, and refused sizes and states."""

import math

import pytest
import torch
from torch import Tensor

from foveal.errors import ShapeError, ValueRangeError
from foveal.models import NTMCellSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.networks import CellState, NTMCell
from foveal.specs import with_setting

ROWS, WIDTH = 5, 2


def softplus(number: float) -> float:
    return math.log1p(math.exp(number))


def addressed(asked: list[float], memory: list[list[float]], before: list[float]) -> list[float]:
    """Address one head with Python numbers, one equation after another."""
    key, (strength, gate, sharpness), shifts = asked[:WIDTH], asked[WIDTH : WIDTH + 3], asked[-3:]
    scores = []
    for row in memory:
        product = sum(k * m for k, m in zip(key, row, strict=True))
        lengths = math.hypot(*key) * math.hypot(*row)
        scores.append(math.exp(softplus(strength) * product / lengths) if lengths else 1.0)
    content = [score / sum(scores) for score in scores]
    gate = 1 / (1 + math.exp(-gate))
    mixed = [gate * c + (1 - gate) * w for c, w in zip(content, before, strict=True)]
    total = sum(map(math.exp, shifts))
    left, stay, right = (math.exp(shift) / total for shift in shifts)
    powers = []
    for i in range(ROWS):
        moved = left * mixed[(i + 1) % ROWS] + stay * mixed[i] + right * mixed[(i - 1) % ROWS]
        powers.append(moved ** (1 + softplus(sharpness)))
    return [power / sum(powers) for power in powers]


def test_outputs_equal_a_loop_over_the_equations() -> None:
    torch.manual_seed(0)
    cell, inputs = NTMCell(3, 4, num_rows=ROWS, row_size=WIDTH).double(), torch.randn(6, 3).double()
    memory = [[0.0] * WIDTH for _ in range(ROWS)]
    read = write = [1.0] + [0.0] * (ROWS - 1)
    controlled, vector, expected = cell.controller.start([]), torch.zeros(WIDTH).double(), []
    for value in inputs:
        controlled = cell.controller(torch.cat([value, vector]), controlled)
        asked = cell.write(controlled.hidden).tolist()
        write = addressed(asked[: -2 * WIDTH], memory, write)
        erase = [1 / (1 + math.exp(-e)) for e in asked[-2 * WIDTH : -WIDTH]]
        add = [math.tanh(a) for a in asked[-WIDTH:]]
        memory = [
            [m * (1 - w * e) + w * a for m, e, a in zip(row, erase, add, strict=True)]
            for row, w in zip(memory, write, strict=True)
        ]
        read = addressed(cell.read(controlled.hidden).tolist(), memory, read)
        columns = zip(*memory, strict=True)
        vector = torch.tensor(
            [sum(w * m for w, m in zip(read, column, strict=True)) for column in columns]
        ).double()
        expected.append(cell.output(torch.cat([controlled.hidden, vector])))
    found = cell.run(inputs.unsqueeze(0), cell.start([1]))
    torch.testing.assert_close(found.outputs[0], torch.stack(expected), rtol=1e-5, atol=1e-5)
    heads = cell.heads(found.state)
    torch.testing.assert_close(heads.memory[0].tolist(), memory, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(heads.read[0, 0].tolist(), read, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(heads.write[0, 0].tolist(), write, rtol=1e-5, atol=1e-5)


def fixed(cell: NTMCell, head: str, *numbers: float) -> None:
    """Make the controller ask a head for the same address at every step."""
    layer = cell.get_submodule(head)
    with torch.no_grad():
        for part in layer.parameters():
            part.zero_()
        layer.get_parameter("bias").copy_(torch.tensor(numbers))


def test_heads_write_rows_in_order_and_erase_them() -> None:
    cell = NTMCell(3, 4, num_rows=ROWS, row_size=WIDTH)
    stay, step = (-50.0, 50.0, -50.0), (-50.0, -50.0, 50.0)
    fixed(cell, "read", 0, 0, 0, -50, 50, *stay)
    fixed(cell, "write", 0, 0, 0, -50, 50, *step, 50, 50, 50, -50)  # erase all, add (1, -1)
    state = cell.start([1])
    for _ in range(3):
        state = cell(torch.zeros(1, 3), state)
    memory, read, write = cell.heads(state)
    written: Tensor = torch.tensor([[0, 0], [1, -1], [1, -1], [1, -1], [0, 0]]).float()
    torch.testing.assert_close(memory[0], written, atol=1e-4, rtol=0.0)
    assert read.argmax(-1).item() == 0
    assert write.argmax(-1).item() == 3
    for _ in range(6):  # around the ring, onto rows that are already written
        state = cell(torch.zeros(1, 3), state)
    assert cell.heads(state).memory.abs().amax() < 1.001


def test_more_rows_after_training_change_no_parameter() -> None:
    torch.manual_seed(0)
    small, large = (NTMCell(3, 4, num_rows=rows, row_size=WIDTH) for rows in (ROWS, 3 * ROWS))
    large.load_state_dict(small.state_dict())
    assert large.heads(large(torch.randn(2, 3), large.start([2]))).memory.shape == (2, 15, WIDTH)


def test_settings_choose_the_memory() -> None:
    spec = with_setting(TextEncoderSpec(), "cell", "ntm")
    spec = with_setting(spec, "cell.num_rows", "7")
    assert spec.cell == NTMCellSpec(num_rows=7)
    model = with_setting(Seq2SeqSpec(), "decoder.cell", "ntm").build(
        source_vocabulary=9, target_vocabulary=7
    )
    assert (
        model(torch.randint(9, (2, 5)), None, torch.randint(7, (2, 4))).log_probs.isfinite().all()
    )


def test_wrong_sizes_and_states_are_refused() -> None:
    with pytest.raises(ValueRangeError, match="num_rows must be at least 3"):
        NTMCell(3, 4, num_rows=2)
    cell = NTMCell(3, 4, num_rows=ROWS, row_size=WIDTH)
    with pytest.raises(ShapeError, match="got 4"):
        cell(torch.zeros(1, 3), CellState(torch.zeros(1, 4), torch.zeros(1, 4)))

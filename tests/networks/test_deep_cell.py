"""The deep cell computes its equation, obeys the laws of cells, and is a setting of every recurrent network."""

import pytest
import torch
from torch import tanh
from torch.testing import assert_close

from foveal.errors import ShapeError, ValueRangeError
from foveal.models import DeepCellSpec, LanguageModelSpec, Seq2SeqSpec
from foveal.networks import CellState
from foveal.networks.recurrent._deep import DeepCell
from foveal.specs import with_setting
from foveal.testing import check_cell


@pytest.mark.parametrize("shortcut", [True, False])
def test_a_step_is_the_written_out_equation(shortcut: bool) -> None:
    torch.manual_seed(0)
    cell = DeepCell(3, 4, input_layers=1, transition_layers=2, output_layers=1, shortcut=shortcut)
    x, s = torch.randn(3), torch.randn(4)
    (below,), (deeper,), (above,) = cell.input_layers, cell.transition, cell.output_layers
    z = tanh(below(x))
    a = tanh(cell.from_input.weight @ z + cell.from_input.bias + cell.from_state.weight @ s)
    scores = deeper(a)
    if cell.shortcut is not None:
        scores = scores + cell.shortcut.weight @ s
    assert (cell.shortcut is not None) == shortcut
    after = cell(x, CellState(torch.zeros(4), s))
    assert_close(after.cell, tanh(scores))
    assert_close(after.hidden, tanh(above(tanh(scores))))


@pytest.mark.parametrize("layers", [(0, 1, 0), (1, 3, 0), (2, 2, 2)])
def test_a_deep_cell_obeys_the_laws(layers: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    below, inside, above = layers
    check_cell(DeepCell(3, 4, input_layers=below, transition_layers=inside, output_layers=above))


def test_settings_choose_the_depths() -> None:
    spec = with_setting(LanguageModelSpec(), "cell", "deep")
    spec = with_setting(spec, "cell.transition_layers", "3")
    assert spec.cell == DeepCellSpec(transition_layers=3)
    seq2seq = with_setting(Seq2SeqSpec(), "decoder.cell", "deep")
    seq2seq = with_setting(seq2seq, "decoder.cell.output_layers", "1")
    model = seq2seq.build(source_vocabulary=9, target_vocabulary=7)
    assert model(torch.randint(9, (2, 5)), None, torch.randint(7, (2, 4))).log_probs.shape[1] == 4


def test_wrong_depths_and_states_are_refused() -> None:
    with pytest.raises(ValueRangeError, match="at least 1 transition layer"):
        DeepCell(3, 4, transition_layers=0)
    with pytest.raises(ShapeError, match="got a state without memory"):
        DeepCell(3, 4, output_layers=1)(torch.zeros(1, 3), CellState(torch.zeros(1, 4)))

"""The window cell reads the last inputs and nothing before them, also in a language model and in search."""

import pytest
import torch
from torch.testing import assert_close

from foveal.data import Example
from foveal.errors import ShapeError, ValueRangeError
from foveal.models import LanguageModelSpec, Seq2SeqSpec, WindowCellSpec
from foveal.networks import CellState, WindowCell
from foveal.specs import with_setting
from foveal.tasks import LanguageModelingSpec, PredictionSpec
from tests.tasks.tiny import train


def test_an_output_is_one_layer_over_the_last_inputs() -> None:
    torch.manual_seed(0)
    cell, inputs = WindowCell(3, 4, context=2), torch.randn(1, 5, 3)
    outputs = cell.run(inputs, cell.start([1])).outputs
    before = torch.cat([torch.zeros(1, 1, 3), inputs[:, :-1]], 1)
    weight, bias = cell.window.weight, cell.window.bias
    assert_close(outputs, torch.tanh(torch.cat([before, inputs], -1) @ weight.mT + bias))


@pytest.mark.parametrize(("num_layers", "reach"), [(1, 3), (2, 5)])
def test_a_language_model_depends_on_its_context_only(num_layers: int, reach: int) -> None:
    torch.manual_seed(0)
    spec = LanguageModelSpec(cell=WindowCellSpec(context=3), hidden_size=8, num_layers=num_layers)
    model = spec.build(vocabulary=9).eval()
    tokens = torch.randint(8, (1, 12))
    other = tokens.clone()
    other[0, 4] = 8
    changed = (model(tokens).log_probs != model(other).log_probs).any(-1)[0].nonzero().flatten()
    assert changed.tolist() == list(range(4, 4 + reach))


def test_a_setting_chooses_the_context() -> None:
    spec = with_setting(LanguageModelSpec(), "cell", "window")
    spec = with_setting(spec, "cell.context", "7")
    assert spec.cell == WindowCellSpec(context=7)


def test_a_decoder_starts_its_window_from_the_summary() -> None:
    spec = with_setting(Seq2SeqSpec(), "decoder.cell", "window")
    model = spec.build(source_vocabulary=9, target_vocabulary=7)
    assert model(torch.randint(9, (2, 5)), None, torch.randint(7, (2, 4))).log_probs.shape[1] == 4


def test_wrong_contexts_and_states_are_refused() -> None:
    with pytest.raises(ValueRangeError, match="context must be at least 1"):
        WindowCell(3, 4, context=0)
    cell = WindowCell(3, 4, context=3)
    with pytest.raises(ShapeError, match="of width 6 in all, got 4"):
        cell(torch.zeros(1, 3), CellState(torch.zeros(1, 4), torch.zeros(1, 4)))


def test_a_trigram_network_learns_and_continues_a_text() -> None:
    """After "ab" comes "c", after "cb" comes "a": two characters of context decide."""
    torch.manual_seed(0)
    examples = [Example("abcbabcbabcbabcb")] * 20
    model = LanguageModelSpec(
        cell=WindowCellSpec(context=2), embedding_size=8, hidden_size=16, dropout=0.0
    )
    task = LanguageModelingSpec(model=model, bptt_length=20).build_from(examples)
    train(task, examples, epochs=10, rate=3e-2, batch_size=4)
    task.model.eval()
    (answer,) = task.predict([Example("abcb")], PredictionSpec(max_length=6))
    assert answer.output.startswith("abcb")
    assert task.evaluate(examples[:1]).value < 1.3

"""Cells in the form of textbooks, against their equations; initial states that are learned."""

import torch
from torch.testing import assert_close

from foveal.models import LanguageModelSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.networks import GRUCell, PlainDecoder
from foveal.networks.recurrent._layers import CellState
from foveal.networks.recurrent._textbook import LogisticCell, TextbookGRUCell
from foveal.networks.search._prepared_encoder import PreparedEncoder
from foveal.specs import with_setting


def test_the_logistic_cell() -> None:
    torch.manual_seed(0)
    cell, x, h = LogisticCell(3, 4), torch.randn(3), torch.rand(4)
    scores = cell.from_input.weight @ x + cell.from_state.weight @ h + cell.from_input.bias
    assert_close(cell(x, CellState(h)).hidden, 1 / (1 + torch.exp(-scores)))


def test_the_reset_gate_multiplies_the_state() -> None:
    torch.manual_seed(0)
    cell, x, h = TextbookGRUCell(3, 4), torch.randn(3), torch.rand(4)
    of_input = cell.from_input.weight @ x + cell.from_input.bias
    r = torch.sigmoid(of_input[:4] + cell.gates.weight[:4] @ h)
    z = torch.sigmoid(of_input[4:8] + cell.gates.weight[4:] @ h)
    n = torch.tanh(of_input[8:] + cell.candidate.weight @ (r * h))
    found = cell(x, CellState(h)).hidden
    assert_close(found, (1 - z) * n + z * h)
    # The cell of torch with the same weights gives another state.
    other = GRUCell(3, 4)
    with torch.no_grad():
        other.weights.input.copy_(cell.from_input.weight)
        other.weights.input_bias.copy_(cell.from_input.bias)
        other.weights.hidden.copy_(torch.cat([cell.gates.weight, cell.candidate.weight]))
        other.weights.hidden_bias.zero_()
    assert not torch.allclose(other(x, CellState(h)).hidden, found)


def test_settings_choose_the_cells() -> None:
    for name, kind in (("logistic", LogisticCell), ("textbook_gru", TextbookGRUCell)):
        spec = with_setting(LanguageModelSpec(), "cell", name)
        assert isinstance(spec.build(vocabulary=5).decoder.stack.layers[0], kind)


def test_a_language_model_learns_its_initial_state() -> None:
    torch.manual_seed(0)
    model = LanguageModelSpec(learned_state=True, hidden_size=8).build(vocabulary=9)
    tokens = torch.randint(9, (2, 5))
    model.score(tokens, tokens.roll(-1, 1)).loss.sum().backward()
    assert isinstance(model.decoder, PlainDecoder)
    learned = dict(model.decoder.bridge.named_parameters())
    assert len(learned) == 2  # hidden vector and memory of the LSTM
    for part in learned.values():
        assert part.grad is not None
        assert part.grad.any()


def test_an_encoder_starts_from_its_learned_state() -> None:
    torch.manual_seed(0)
    spec = with_setting(Seq2SeqSpec(), "encoder.learned_state", "true").encoder
    assert spec == TextEncoderSpec(learned_state=True)
    encoder = spec.build(9).eval()
    tokens = torch.randint(9, (2, 5))
    before = encoder(tokens).values
    with torch.no_grad():
        for part in encoder.initial.parameters():
            part.add_(0.5)
    after = encoder(tokens).values
    assert not torch.allclose(before, after)
    assert_close(PreparedEncoder(encoder)(tokens).values, after)

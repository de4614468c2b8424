"""The kernels of search compute what torch computes, and a row has the same bits in any batch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from foveal.decoding import beam_search, greedy
from foveal.decoding._hypotheses import Hypotheses
from foveal.inference import _native
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.models._encoder_decoder import Prepared
from foveal.networks.recurrent._cells import LSTMCell
from foveal.networks.recurrent._layers import CellState
from foveal.networks.search._kernels import Packed
from foveal.networks.search._prepared_lstm import GateScores, PreparedLSTM

foveal_native = pytest.importorskip("foveal_native", reason="foveal-native is not installed")

OPS = torch.ops.foveal_native
HALVES = (False, True) if foveal_native.multiplies_in_half_precision() else (False,)
# Half precision has 8 bits: factors are off by 2^-9, and the errors of a sum of 300 products mostly cancel.
TOLERANCE = {False: 2e-6, True: 0.02}
SIZES = {"source_vocabulary": 12, "target_vocabulary": 12}


def close(found: Tensor, expected: Tensor, half: bool) -> None:
    torch.testing.assert_close(found, expected, rtol=TOLERANCE[half], atol=TOLERANCE[half])


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 40, 65), (33, 300, 70), (300, 33, 17)], ids=str)
def test_products_add_up(shape: tuple[int, int, int], half: bool) -> None:
    rows, width, columns = shape
    given, weight = torch.randn(rows, width), torch.randn(width, columns) / width**0.5
    bias, packed = torch.randn(columns), Packed(weight, half=half)
    exact = (given.double() @ weight.double()).float()
    close(packed.times(given), exact, half)
    close(packed.times(given, bias), exact + bias, half)


@pytest.mark.parametrize("half", HALVES)
def test_a_row_has_the_same_bits_in_any_batch(half: bool) -> None:
    given, packed = torch.randn(70, 50), Packed(torch.randn(50, 90), half=half)
    whole = packed.times(given)
    for first in range(0, 70, 9):
        for count in (1, 2, 7, 8, 17, 33):
            assert torch.equal(packed.times(given[first : first + count]), whole[first:][:count])


def cell_of(size: int) -> LSTMCell:
    torch.manual_seed(0)
    return LSTMCell(4, size).eval()


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("each", [1, 5, 40])
@pytest.mark.parametrize("size", [1, 16, 21])
def test_a_step_of_an_lstm(size: int, each: int, half: bool) -> None:
    cell, batch = cell_of(size), 13
    prepared = PreparedLSTM(cell, half=half)
    hidden, memory = torch.rand(2, batch, each, size) - 0.5
    hidden[:, -1], hidden[:, each // 2] = hidden[:, 0], hidden[:, 0]  # children of one hypothesis
    table, tokens = torch.randn(6, 4), torch.randint(6, (batch, each))
    scores = torch.addmm(prepared.bias, table, prepared.input_weight)
    found = prepared.step(GateScores(scores, tokens), CellState(hidden, memory))
    with torch.no_grad():
        expected = cell(table[tokens], CellState(hidden, memory))
    close(found.hidden, expected.hidden, half)
    assert found.cell is not None
    assert expected.cell is not None
    close(found.cell, expected.cell, half)
    some = CellState(hidden[5:6], memory[5:6])
    alone = prepared.step(GateScores(scores, tokens[5:6]), some)
    assert torch.equal(alone.hidden, found.hidden[5:6])


@pytest.mark.parametrize("each", [1, 3])
def test_attention_reads_no_padding(each: int) -> None:
    batch, length, query, width = 4, 5, 19, 21
    products, keys = torch.randn(batch, each, query + width), torch.randn(batch, length, query)
    weight, values = torch.randn(query), torch.randn(batch, length, width)
    mask = torch.rand(batch, 1, length) < 0.6
    mask[0] = False
    mask[1] = True
    shut = torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf)
    vectors, weights = OPS.search_attend(products, keys, weight, values, shut)
    scores = torch.tanh(products[..., None, :query] + keys[:, None]) @ weight
    expected = scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)
    close(weights, expected, False)
    close(vectors, torch.tanh(products[..., query:] + expected @ values), False)


def prepared_model(half: bool, monkeypatch: pytest.MonkeyPatch, *, kernels: bool) -> Prepared:
    monkeypatch.setattr(_native, "_IN_USE", kernels)
    torch.manual_seed(3)
    spec = Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=9, hidden_size=21, num_layers=2, bidirectional=True),
        decoder=DecoderSpec(embedding_size=7, hidden_size=21),
    )
    model = spec.build(**SIZES).eval()
    with torch.no_grad():
        for part in model.parameters():
            part.mul_(3)  # outputs of an untrained model would all be alike
    return model.prepare(half=half)


SEARCHES: dict[str, Callable[..., Hypotheses]] = {
    "greedy": greedy,
    "beam": lambda *given, **options: beam_search(*given, beam_size=4, nbest=2, **options),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_searches_write_what_they_write_without_kernels(
    search: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, lengths = torch.randint(12, (37, 9)), torch.randint(1, 9, (37,))
    mask = torch.arange(9) < lengths[:, None]
    found = []
    for kernels in (False, True):
        prepared = prepared_model(False, monkeypatch, kernels=kernels)
        state = prepared.start(tokens, mask)
        options = {"begin": 1, "end": 2, "max_length": 8, "with_weights": True}
        found.append(SEARCHES[search](prepared.stepper, state, **options))
    reference, ours = found
    assert torch.equal(ours.tokens, reference.tokens)
    torch.testing.assert_close(ours.log_probs, reference.log_probs, rtol=1e-5, atol=2e-5)
    torch.testing.assert_close(ours.weights, reference.weights, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("search", SEARCHES)
def test_an_answer_has_the_same_bits_in_any_batch(
    search: str, half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, prepared = (
        torch.randint(12, (40, 9)),
        prepared_model(half, monkeypatch, kernels=True),
    )
    mask = torch.arange(9) < torch.randint(1, 8, (40, 1))
    options = {"begin": 1, "end": 2, "max_length": 8}
    together = SEARCHES[search](prepared.stepper, prepared.start(tokens, mask), **options)
    for item in (0, 17, 39):
        some = slice(item, item + 1)
        alone = SEARCHES[search](
            prepared.stepper, prepared.start(tokens[some], mask[some]), **options
        )
        size = alone.tokens.shape[2]
        assert torch.equal(alone.tokens[0], together.tokens[item, :, :size])
        assert torch.equal(alone.scores[0], together.scores[item])


def test_other_weights_take_the_reference_path() -> None:
    assert PreparedLSTM(cell_of(5).double()).from_state.packed is None


def test_tokens_must_be_in_the_table() -> None:
    hidden = torch.zeros(1, 1, 16)
    packed = OPS.search_pack(torch.zeros(16, 64), False)
    with pytest.raises(RuntimeError, match="tokens must be rows of the table"):
        OPS.search_step(
            torch.zeros(3, 64), torch.tensor([[3]]), None, hidden, hidden, packed, False
        )

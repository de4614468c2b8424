"""An encoder prepared for search returns the values of the original encoder."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import Memory
from foveal.errors import ValueRangeError
from foveal.networks import AbstractEncoder, GRUCell, TextEncoder, WordEncoder, recurrent_stack
from foveal.networks.search import _prepared_encoder, _prepared_lstm
from foveal.networks.search._prepared_encoder import PreparedEncoder

NUM_WORDS, BATCH, SIZE = 11, 5, 7


def text_encoder(**options: Any) -> TextEncoder:
    torch.manual_seed(0)
    stack = recurrent_stack(4, 6, **options)
    return TextEncoder(nn.Embedding(NUM_WORDS, 4), stack, dropout=0.3).eval()


STACKS = {
    "one way": {},
    "both ways": {"bidirectional": True},
    "two layers": {"num_layers": 2, "bidirectional": True},
    "residual": {"num_layers": 2, "residual": True},
    "another cell": {"cell": GRUCell, "bidirectional": True},
}

MASKS = {
    "none": None,
    "all real": torch.ones(BATCH, SIZE, dtype=torch.bool),
    "right": torch.arange(SIZE) < torch.tensor([[3], [7], [0], [5], [1]]),
    "left": torch.arange(SIZE) >= torch.tensor([[3], [7], [0], [5], [1]]),
    "shorter than the batch": torch.arange(SIZE) < torch.tensor([[2], [3], [3], [0], [1]]),
    "holes": torch.rand(BATCH, SIZE, generator=torch.Generator().manual_seed(1)) < 0.5,
    "nothing": torch.zeros(BATCH, SIZE, dtype=torch.bool),
}


def assert_same(found: Memory, expected: Memory) -> None:
    torch.testing.assert_close(found.values, expected.values, rtol=1e-5, atol=1e-6)
    assert found.mask is expected.mask
    assert found.layout == expected.layout
    assert (found.summary is None) == (expected.summary is None)
    if found.summary is not None:
        torch.testing.assert_close(found.summary, expected.summary, rtol=1e-5, atol=1e-6)
    assert not found.values.requires_grad


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("stack", STACKS)
def test_it_reads_what_the_encoder_reads(stack: str, mask: str) -> None:
    encoder = text_encoder(**STACKS[stack])
    tokens = torch.randint(NUM_WORDS, (BATCH, SIZE))
    assert_same(PreparedEncoder(encoder)(tokens, MASKS[mask]), encoder(tokens, MASKS[mask]))


@pytest.mark.parametrize("table", [0, 2**22])
@pytest.mark.parametrize("piece", [1, 300, 2**18])
def test_with_and_without_a_table_and_in_pieces_of_any_size(
    monkeypatch: pytest.MonkeyPatch, piece: int, table: int
) -> None:
    monkeypatch.setattr(_prepared_encoder, "_PIECE", piece)
    monkeypatch.setattr(_prepared_lstm, "_TABLE", table)
    encoder = text_encoder(num_layers=2, bidirectional=True)
    tokens = torch.randint(NUM_WORDS, (BATCH, SIZE))
    for mask in MASKS.values():
        assert_same(PreparedEncoder(encoder)(tokens, mask), encoder(tokens, mask))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("stack", STACKS)
def test_in_half_precision_it_is_good_to_three_digits(stack: str, mask: str) -> None:
    encoder = text_encoder(**STACKS[stack])
    tokens = torch.randint(NUM_WORDS, (BATCH, SIZE))
    found = PreparedEncoder(encoder, half=True)(tokens, MASKS[mask])
    expected = encoder(tokens, MASKS[mask])
    assert found.values.dtype == torch.float32
    torch.testing.assert_close(found.values, expected.values, rtol=0.03, atol=0.01)
    torch.testing.assert_close(found.summary, expected.summary, rtol=0.03, atol=0.01)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("mask", ["right", "left", "holes"])
def test_padding_is_not_read(mask: str, half: bool) -> None:
    prepared = PreparedEncoder(text_encoder(bidirectional=True), half=half)
    tokens, real = torch.randint(NUM_WORDS, (BATCH, SIZE)), MASKS[mask]
    assert real is not None
    clean = prepared(tokens, real)
    assert not clean.values[~real].any()
    for junk in (-1, 10**6):
        dirty = prepared(tokens.masked_fill(~real, junk), real)
        assert torch.equal(dirty.values, clean.values)
        assert dirty.summary is not None
        assert clean.summary is not None
        assert torch.equal(dirty.summary, clean.summary)


def test_texts_alone_and_together() -> None:
    prepared = PreparedEncoder(text_encoder(bidirectional=True))
    tokens, mask = torch.randint(NUM_WORDS, (BATCH, SIZE)), MASKS["right"]
    assert mask is not None
    whole = prepared(tokens, mask)
    for item in range(BATCH):
        one = slice(item, item + 1)
        assert_same(prepared(tokens[one], mask[one])._replace(mask=None), _one(whole, item))


def _one(memory: Memory, item: int) -> Memory:
    assert memory.summary is not None
    return Memory(memory.values[item : item + 1], None, memory.summary[item : item + 1])


def test_other_encoders_and_other_inputs_are_read_as_they_are() -> None:
    words: AbstractEncoder = WordEncoder(nn.Embedding(NUM_WORDS, 4)).eval()
    tokens = torch.randint(NUM_WORDS, (BATCH, SIZE))
    assert_same(PreparedEncoder(words)(tokens), words(tokens))
    encoder = text_encoder(bidirectional=True)
    sentences: Tensor = torch.randint(NUM_WORDS, (2, 3, 4))
    assert_same(PreparedEncoder(encoder)(sentences), encoder(sentences))


def test_an_encoder_that_trains_cannot_be_prepared() -> None:
    with pytest.raises(ValueRangeError, match=r"Call encoder\.eval\(\) first"):
        PreparedEncoder(text_encoder().train())

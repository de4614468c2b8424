"""An encoder whose words read given heads."""

import pytest
import torch
from torch import nn

from foveal.errors import ShapeError, ValueRangeError
from foveal.networks import GivenHeadsEncoder, WordEncoder

WORDS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 0]])
HEADS = torch.tensor([[2, 0, 2, 3], [0, 1, 1, 9]])
MASK = torch.tensor([[True] * 4, [True] * 3 + [False]])


def encoder() -> GivenHeadsEncoder:
    torch.manual_seed(0)
    made = GivenHeadsEncoder(WordEncoder(nn.Embedding(9, 4)))
    nn.init.normal_(made.reader.root)
    return made


def test_every_word_has_the_vector_of_its_head() -> None:
    made = encoder()
    memory = made(torch.stack([WORDS, HEADS], -1), MASK)
    assert isinstance(made.encoder, WordEncoder)
    table, root = made.encoder.embedding(torch.arange(9)), made.reader.root
    for row, size in ((0, 4), (1, 3)):
        for place in range(size):
            head = int(HEADS[row, place])
            expected = root if head == 0 else table[WORDS[row, head - 1]]
            own = table[WORDS[row, place]]
            torch.testing.assert_close(memory.values[row, place], torch.cat([own, expected]))
    assert not memory.values[1, 3].any()  # padding


def test_the_weights_are_the_heads() -> None:
    made = encoder()
    (attended,) = made.self_attentions(torch.stack([WORDS, HEADS], -1), MASK)
    expected = nn.functional.one_hot(HEADS[0], 5)[:, 1:].float()
    torch.testing.assert_close(attended.weights[0], expected)
    assert attended.distribution.argmax()[0].tolist() == HEADS[0].tolist()


def test_inputs_without_heads_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(..., S, 2\), got shape \(2, 4\)"):
        encoder()(WORDS, MASK)
    with pytest.raises(ValueRangeError, match=r"0 \(root\) to 4, got 9"):
        encoder()(torch.stack([WORDS, HEADS], -1))

"""The law suite for models detects errors: each model in this file breaks one law."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

from foveal.testing import check_model


class Result(NamedTuple):
    log_probs: Tensor


class Bag(nn.Module):
    """A correct model, which subclasses break: the mean of the real words, scored."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(9, 4), nn.Linear(4, 3)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Result:
        real = torch.ones_like(tokens) == 1 if mask is None else mask
        words = self.words(tokens, real)
        return Result(self.output(words.sum(1) / self.count(real).clamp(min=1)).log_softmax(-1))

    def words(self, tokens: Tensor, real: Tensor) -> Tensor:
        return self.embedding(tokens.masked_fill(~real, 0)) * real.unsqueeze(-1)

    def count(self, real: Tensor) -> Tensor:
        return real.sum(-1, keepdim=True)


class CountsPadding(Bag):
    @override
    def count(self, real: Tensor) -> Tensor:
        return torch.full_like(real[:, :1], real.shape[1], dtype=torch.long)


class ReadsPadding(Bag):
    @override
    def words(self, tokens: Tensor, real: Tensor) -> Tensor:
        return self.embedding(tokens.clamp(0, 8))


class LooksAtTheBatch(Bag):
    @override
    def words(self, tokens: Tensor, real: Tensor) -> Tensor:
        words = super().words(tokens, real)
        return words - words.mean((0, 1))


class HasIdleWeights(Bag):
    def __init__(self) -> None:
        super().__init__()
        self.idle = nn.Linear(4, 4)


class Parks(Bag):
    @override
    def words(self, tokens: Tensor, real: Tensor) -> Tensor:
        self.last = super().words(tokens, real)
        return self.last


TOKENS = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 1], [2, 2, 0]])


def test_a_right_model_passes() -> None:
    check_model(Bag(), TOKENS)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (CountsPadding, "without padding"),
        (ReadsPadding, "junk in input 0 is read"),
        (LooksAtTheBatch, "one item alone and in a batch"),
        (HasIdleWeights, r"no gradient reaches idle\.weight"),
        (Parks, "left something on the module"),
    ],
)
def test_a_model_that_breaks_a_law_is_caught(model: type[Bag], text: str) -> None:
    torch.manual_seed(0)
    with pytest.raises(AssertionError, match=text):
        check_model(model(), TOKENS)

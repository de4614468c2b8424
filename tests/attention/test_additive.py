"""Additive scores that are computed in pieces equal the plain sum, tanh and product."""

import pytest
import torch
from torch import Tensor

from foveal.attention import AdditiveScorer, _additive


def parts(
    *batch: int, num_queries: int = 3, num_places: int = 4, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    query = torch.randn(*batch, num_queries, 5, dtype=dtype, requires_grad=True)
    keys = torch.randn(*batch, num_places, 5, dtype=dtype, requires_grad=True)
    return query, keys, torch.randn(5, dtype=dtype, requires_grad=True)


def plain(query: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    return torch.tanh(query.unsqueeze(-2) + keys.unsqueeze(-3)) @ weight


@pytest.mark.parametrize("piece", [1, 25, 100, 2**18])
@pytest.mark.parametrize("batch", [(), (1,), (7,), (2, 3)])
def test_scores_and_gradients_equal_the_plain_form(
    monkeypatch: pytest.MonkeyPatch, batch: tuple[int, ...], piece: int
) -> None:
    """The result is the same if a piece is one query, some queries of an item, or several items."""
    monkeypatch.setattr(_additive, "_PIECE", piece)
    inputs = parts(*batch)
    found, expected = _additive.additive_scores(*inputs), plain(*inputs)
    torch.testing.assert_close(found, expected)
    direction = torch.randn_like(expected)
    for each, other in zip(
        torch.autograd.grad(found, inputs, direction),
        torch.autograd.grad(expected, inputs, direction),
        strict=True,
    ):
        torch.testing.assert_close(each, other)


def test_first_and_second_derivatives() -> None:
    inputs = parts(2, num_queries=2, num_places=3)
    assert torch.autograd.gradcheck(_additive.additive_scores, inputs)
    assert torch.autograd.gradgradcheck(_additive.additive_scores, inputs)


def test_one_memory_for_a_batch_of_queries() -> None:
    query, keys, weight = parts(3)
    torch.testing.assert_close(
        _additive.additive_scores(query, keys[0], weight), plain(query, keys[0], weight)
    )


@pytest.mark.parametrize(("num_queries", "num_places"), [(0, 4), (3, 0)])
def test_nothing_to_score(num_queries: int, num_places: int) -> None:
    inputs = parts(2, num_queries=num_queries, num_places=num_places)
    scores = _additive.additive_scores(*inputs)
    assert scores.shape == (2, num_queries, num_places)
    for gradient in torch.autograd.grad(scores.sum(), inputs):
        assert not gradient.any()


def test_half_precision_is_float32_inside() -> None:
    torch.manual_seed(1)
    scorer = AdditiveScorer(6, 4, hidden_size=8)
    query, values = torch.randn(2, 3, 6), torch.randn(2, 5, 4)
    (exact,) = scorer(query, scorer.remember(values))
    with torch.autocast("cpu", torch.bfloat16):
        (rough,) = scorer(query, scorer.remember(values))
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=0.05, atol=0.03)
    rough.sum().backward()
    assert all(part.grad is not None and part.grad.isfinite().all() for part in scorer.parameters())


def test_the_table_is_not_kept() -> None:
    """Until the backward pass, autograd keeps only the inputs."""
    inputs = parts(8, num_queries=6, num_places=9)
    held: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        held.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        _additive.additive_scores(*inputs)
    assert max(held) <= max(part.numel() for part in inputs)

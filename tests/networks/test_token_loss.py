"""The fused output layer and loss match the two separate operations."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from foveal.networks.decoders import _token_loss
from foveal.networks.decoders._output import TokenOutput

NUM_TOKENS, WIDTH, NUM_WORDS = 37, 5, 11


def layer(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    vectors = torch.randn(NUM_TOKENS, WIDTH, dtype=dtype, requires_grad=True)
    weight = torch.randn(NUM_WORDS, WIDTH, dtype=dtype, requires_grad=True)
    bias = torch.randn(NUM_WORDS, dtype=dtype, requires_grad=True)
    return vectors, weight, bias, torch.randint(NUM_WORDS, (NUM_TOKENS,))


def plain(
    vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, label_smoothing: float
) -> Tensor:
    scores = linear(vectors, weight, bias)
    return cross_entropy(scores, targets, reduction="none", label_smoothing=label_smoothing)


WEIGHTINGS = {
    "sum": torch.ones(NUM_TOKENS, dtype=torch.float64),
    "mean": torch.full((NUM_TOKENS,), 1 / NUM_TOKENS, dtype=torch.float64),
    "each token its own": torch.linspace(-1, 2, NUM_TOKENS, dtype=torch.float64),
    "none": torch.zeros(NUM_TOKENS, dtype=torch.float64),
}


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 16, 1000])
def test_loss_and_gradients_equal_the_plain_form(
    monkeypatch: pytest.MonkeyPatch, rows: int, label_smoothing: float, weighting: str
) -> None:
    """The result is the same for pieces of one row, some rows, or all rows."""
    monkeypatch.setattr(_token_loss, "_LEAST_ROWS", rows)
    monkeypatch.setattr(_token_loss, "_BUFFER", 1)
    vectors, weight, bias, targets = layer()
    loss, log_prob = _token_loss.token_loss(vectors, weight, bias, targets, label_smoothing)
    expected = plain(vectors, weight, bias, targets, label_smoothing)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(log_prob, -plain(vectors, weight, bias, targets, 0.0).detach())
    assert not log_prob.requires_grad
    by = WEIGHTINGS[weighting]
    found = torch.autograd.grad((loss * by).sum(), (vectors, weight, bias))
    for each, other in zip(
        found, torch.autograd.grad((expected * by).sum(), (vectors, weight, bias)), strict=True
    ):
        torch.testing.assert_close(each, other)


def test_first_and_second_derivatives() -> None:
    vectors, weight, bias, targets = layer()
    vectors, targets = vectors[:3].detach().requires_grad_(), targets[:3]

    def loss(vectors: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return _token_loss.token_loss(vectors, weight, bias, targets, 0.1)[0]

    assert torch.autograd.gradcheck(loss, (vectors, weight, bias))
    assert torch.autograd.gradgradcheck(loss, (vectors, weight, bias))


def test_a_backward_may_be_repeated() -> None:
    vectors, weight, bias, targets = layer()
    loss = _token_loss.token_loss(vectors, weight, bias, targets)[0].mean()
    first = torch.autograd.grad(loss, (vectors, weight, bias), retain_graph=True)
    again = torch.autograd.grad(loss, (vectors, weight, bias))
    for each, other in zip(first, again, strict=True):
        assert torch.equal(each, other)


def test_scores_far_apart_stay_exact() -> None:
    """A target whose probability is 0 in float32 has a finite loss; the most probable target has
    loss 0.
    """
    weight = torch.tensor([[1000.0], [0.0], [-1000.0]], requires_grad=True)
    vectors, bias = torch.ones(3, 1, requires_grad=True), torch.zeros(3)
    loss, _ = _token_loss.token_loss(vectors, weight, bias, torch.tensor([0, 1, 2]))
    torch.testing.assert_close(loss, torch.tensor([0.0, 1000.0, 2000.0]))
    (gradient,) = torch.autograd.grad(loss.sum(), vectors)
    torch.testing.assert_close(gradient[:, 0], torch.tensor([0.0, 1000.0, 2000.0]))


def test_without_a_gradient_the_value_is_the_same() -> None:
    parts = layer(torch.float32)
    with_gradient, _ = _token_loss.token_loss(*parts, 0.1)
    with torch.no_grad():
        without, _ = _token_loss.token_loss(*parts, 0.1)
    assert not without.requires_grad
    torch.testing.assert_close(without, with_gradient.detach())


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_half_precision_is_as_close_as_that_of_the_plain_form(label_smoothing: float) -> None:
    vectors, weight, bias, targets = layer(torch.float32)
    exact = plain(vectors, weight, bias, targets, label_smoothing)
    exact_gradients = torch.autograd.grad(exact.mean(), (vectors, weight, bias))
    with torch.autocast("cpu", torch.bfloat16):
        loss, log_prob = _token_loss.token_loss(vectors, weight, bias, targets, label_smoothing)
        rough = plain(vectors, weight, bias, targets, label_smoothing)
    assert loss.dtype == log_prob.dtype == torch.float32
    assert (loss - exact).abs().max() <= 1.5 * (rough - exact).abs().max() + 1e-3
    gradients = torch.autograd.grad(loss.mean(), (vectors, weight, bias))
    for each, other in zip(gradients, exact_gradients, strict=True):
        assert each.dtype == torch.float32
        torch.testing.assert_close(each, other, rtol=0.05, atol=2e-3)


@pytest.mark.parametrize("tie_embeddings", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_padding_is_skipped(dtype: torch.dtype, tie_embeddings: bool) -> None:
    """Padded vectors and targets change neither loss nor gradient; the results are bit-identical."""
    torch.manual_seed(1)
    embedding = nn.Embedding(NUM_WORDS, WIDTH).to(dtype)
    output = TokenOutput(WIDTH, embedding, tie_embeddings=tie_embeddings).to(dtype)
    vectors, targets = torch.randn(3, 4, WIDTH, dtype=dtype), torch.randint(NUM_WORDS, (3, 4))
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]]).bool()
    results = []
    for junk, aim in ((0.0, 0), (torch.nan, -1), (torch.inf, 10**6)):
        live = vectors.masked_fill(~mask.unsqueeze(-1), junk).requires_grad_()
        loss, log_prob = output.score(live, embedding, targets.masked_fill(~mask, aim), mask)
        table = embedding.weight if output.weight is None else output.weight
        results.append(
            (loss, log_prob, *torch.autograd.grad(loss.sum(), (live, table, output.bias)))
        )
    for parts in zip(*results, strict=True):
        assert all(torch.equal(part, parts[0]) for part in parts)
    loss, _, of_vectors, *_ = results[0]
    assert not loss[~mask].any()
    assert not of_vectors[~mask].any()
    expected = -output(vectors, embedding).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    close = 0.05 if dtype is torch.bfloat16 else 1e-5
    torch.testing.assert_close(loss[mask], expected[mask].float(), rtol=close, atol=close)


def test_a_batch_of_padding_alone_has_no_loss_and_no_gradient() -> None:
    embedding = nn.Embedding(NUM_WORDS, WIDTH)
    output = TokenOutput(WIDTH, embedding)
    vectors = torch.randn(2, 3, WIDTH, requires_grad=True)
    mask = torch.zeros(2, 3, dtype=torch.bool)
    loss, _ = output.score(vectors, embedding, torch.zeros(2, 3, dtype=torch.long), mask)
    assert not loss.any()
    loss.sum().backward()
    assert vectors.grad is not None
    assert not vectors.grad.any()
    assert output.bias.grad is not None
    assert not output.bias.grad.any()


def test_frozen_parts_ask_for_no_gradient() -> None:
    vectors, weight, bias, targets = layer()
    loss, _ = _token_loss.token_loss(vectors.detach(), weight, bias.detach(), targets)
    loss.sum().backward()
    assert weight.grad is not None
    assert vectors.grad is None

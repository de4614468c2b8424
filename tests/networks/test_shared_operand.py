"""Many products with one shared operand have the gradients of plain products."""

import pytest
import torch
from torch import Tensor

from foveal.attention import Memory
from foveal.errors import DerivativeError
from foveal.models import (
    AdditiveSpec,
    AttentionSpec,
    BilinearSpec,
    DecoderSpec,
    SegmentSpec,
    SoftmaxSpec,
    SparsemaxSpec,
)
from foveal.networks.decoders import _fed_steps
from foveal.networks.decoders._shared_operand import SharedOperand, shared_operand


def steps(operand: Tensor, starts: Tensor, number: int = 4) -> list[Tensor]:
    """Compute a chain of products, each applied to the result before it."""
    outputs = [starts]
    for _ in range(number):
        outputs.append(torch.tanh(outputs[-1] @ operand))
    return outputs[1:]


@pytest.fixture
def whole() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(3, 5, 5, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def starts() -> Tensor:
    return torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)


def gradients(loss: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, inputs, retain_graph=True)


def test_gradients_are_those_of_plain_products(whole: Tensor, starts: Tensor) -> None:
    expected = gradients(torch.stack(steps(whole, starts)).sin().sum(), whole, starts)
    got = gradients(torch.stack(steps(shared_operand(whole), starts)).sin().sum(), whole, starts)
    torch.testing.assert_close(got, expected)


def test_any_part_of_the_steps_may_be_asked_for_in_any_order(whole: Tensor, starts: Tensor) -> None:
    shared, plain = steps(shared_operand(whole), starts), steps(whole, starts)
    gradients(shared[3].sum(), starts)  # leaves saved gradients that are not used
    for number in (1, 3, 0, 2):
        expected = gradients(plain[number].sum(), whole)
        torch.testing.assert_close(gradients(shared[number].sum(), whole), expected)


def test_other_uses_are_those_of_the_tensor_itself(whole: Tensor, starts: Tensor) -> None:
    operand = shared_operand(whole)
    loss = (starts @ operand).sum() + (operand * operand).sum() + operand.exp()[0, 1, 2]
    expected = (starts @ whole).sum() + (whole * whole).sum() + whole.exp()[0, 1, 2]
    assert type(operand * 2) is Tensor
    assert "MulBackward" in str((operand * 2).grad_fn)
    torch.testing.assert_close(gradients(loss, whole), gradients(expected, whole))


def test_a_product_makes_no_gradient_of_the_operand_by_itself(
    whole: Tensor, starts: Tensor
) -> None:
    for product in (starts @ shared_operand(whole), torch.matmul(starts, shared_operand(whole))):
        assert "_Product" in str(product.grad_fn)


def test_rows_may_have_any_shape_that_a_product_takes(whole: Tensor) -> None:
    """One pass takes rows of different ranks and sizes, each with its gradients."""
    shapes = [(3, 2, 5), (2, 5), (4, 3, 2, 5), (1, 2, 5), (5,), (3, 1, 5)]
    rows = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    for matrix in (whole, whole[0].detach().requires_grad_()):

        def loss(operand: Tensor) -> Tensor:
            return torch.stack([(each @ operand).sin().sum() for each in rows]).sum()

        got = gradients(loss(shared_operand(matrix)), matrix, *rows)
        torch.testing.assert_close(got, gradients(loss(matrix), matrix, *rows))


def test_a_second_derivative_is_refused(whole: Tensor, starts: Tensor) -> None:
    loss = steps(shared_operand(whole), starts)[-1].sum()
    with pytest.raises(DerivativeError, match="one derivative can be taken"):
        torch.autograd.grad(loss, whole, create_graph=True)


def test_where_no_gradient_is_wanted_it_is_the_tensor(whole: Tensor) -> None:
    assert isinstance(shared_operand(whole), SharedOperand)
    assert shared_operand(whole.detach()).requires_grad is False
    with torch.no_grad():
        assert shared_operand(whole) is whole
    with torch.autocast("cpu", torch.bfloat16):
        assert shared_operand(whole) is whole


@pytest.mark.parametrize(
    "attention",
    [
        SoftmaxSpec(scorer=BilinearSpec(scaled=True)),
        SoftmaxSpec(scorer=AdditiveSpec()),
        SegmentSpec(scorer=BilinearSpec()),
        SparsemaxSpec(scorer=BilinearSpec()),
    ],
    ids=["bilinear", "additive", "segment", "sparsemax"],
)
def test_a_decoder_learns_from_it_what_it_always_did(
    attention: AttentionSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = DecoderSpec(embedding_size=4, hidden_size=6, attention=attention, input_feeding=True)
    torch.manual_seed(2)
    decoder = spec.build(7, 5, 5).double().eval()
    values = torch.randn(2, _fed_steps._MANY, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(values.shape[:-1], dtype=torch.bool)
    mask[1, 30:] = False
    tokens = torch.randint(7, (2, 6))

    def found() -> tuple[Tensor, ...]:
        memory = decoder.remember(Memory(values, mask, values.mean(-2)))
        loss = decoder.unroll(tokens, memory).log_probs.square().sum()
        return torch.autograd.grad(loss, (values, *decoder.parameters()))

    noted = found()
    monkeypatch.setattr(_fed_steps, "_MANY", 1000)
    torch.testing.assert_close(noted, found())

"""Forward-mode AD and the transforms of torch.func against differences and plain autograd."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.testing import assert_close

from foveal.distributions import Alignment, LinearChain, ProjectiveTree, SpanningTree
from foveal.errors import DerivativeError, TransformError

from .every_distribution import DENSE, SPARSE, scores_of

# torch raises these warnings when it computes a Jacobian.
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.slow]

# Entmax and SparseChain have kinks; these seeds are away from them.
EVERY = {**DENSE, **SPARSE}
# These use only torch operations, which have derivative rules in torch.
PLAIN = {"Categorical", "Subset", "PCFG", "SiblingTree"}


def total_of(name: str, scores: Tensor) -> Tensor:
    if name in DENSE:
        return DENSE[name].build(scores).log_partition()
    return SPARSE[name].build(scores).smoothed_max()


def along(function: Callable[[Tensor], Tensor], scores: Tensor, direction: Tensor) -> Tensor:
    """Return the central difference along a direction."""
    return (function(scores + 1e-6 * direction) - function(scores - 1e-6 * direction)) / 2e-6


@pytest.mark.parametrize("name", EVERY)
def test_forward_mode_equals_differences(name: str) -> None:
    kind = EVERY[name]
    scores, direction = scores_of(kind), scores_of(kind, seed=1)
    value = kind.build(scores).argmax()
    functions = (
        lambda part: total_of(name, part),
        lambda part: kind.build(part).marginals(),
        lambda part: kind.build(part).log_prob(value),
        lambda part: kind.build(part).entropy(),
    )
    for function in functions:
        expected = along(function, scores, direction)
        tangent = torch.func.jvp(function, (scores,), (direction,))[1]
        assert_close(tangent, expected, rtol=1e-6, atol=1e-6)
        with forward_ad.dual_level():
            dual = function(forward_ad.make_dual(scores, direction))
            found = forward_ad.unpack_dual(dual).tangent
        assert found is not None, "the tangent is missing"
        assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "log_partition",
    [
        lambda scores: Alignment.one_to_many(scores[:3, :4]).log_partition(),
        lambda scores: Alignment.ctc(scores, torch.tensor([1, 2])).log_partition(),
        lambda scores: ProjectiveTree(
            scores, mask=torch.tensor([True, False, True])
        ).log_partition(),
        lambda scores: SpanningTree(scores, mask=torch.tensor([True, False, True])).log_partition(),
    ],
)
def test_forward_mode_with_forbidden_parts_and_padding(
    log_partition: Callable[[Tensor], Tensor],
) -> None:
    generator = torch.Generator().manual_seed(0)
    scores, direction = torch.randn(2, 4, 4, generator=generator, dtype=torch.float64)
    tangent = torch.func.jvp(log_partition, (scores,), (direction,))[1]
    assert_close(tangent, along(log_partition, scores, direction), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_jacobians_and_hessians_equal_plain_autograd(name: str) -> None:
    kind = EVERY[name]
    scores = scores_of(kind)

    def marginals(part: Tensor) -> Tensor:
        return kind.build(part).marginals()

    def total(part: Tensor) -> Tensor:
        return total_of(name, part)

    jacobian = torch.autograd.functional.jacobian(marginals, scores)
    assert isinstance(jacobian, Tensor)
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        assert_close(transform(marginals)(scores), jacobian)
    for hessian in (torch.func.hessian(total), torch.func.jacrev(torch.func.jacrev(total))):
        assert_close(hessian(scores), jacobian)
    both = torch.stack([scores, scores], -1)
    assert_close(torch.vmap(torch.func.hessian(total), in_dims=-1)(both)[1], jacobian)


def test_hessian_in_shared_transitions() -> None:
    unary = torch.zeros(2, 3, 2, dtype=torch.float64)

    def total(transitions: Tensor) -> Tensor:
        return LinearChain(unary, transitions).log_partition().sum()

    transitions = torch.tensor([[0.3, -1.0], [0.7, 0.1]], dtype=torch.float64)
    expected = torch.autograd.functional.hessian(total, transitions)
    assert_close(torch.func.hessian(total)(transitions), expected)


def test_gradients_of_log_probabilities_for_each_item() -> None:
    kind = DENSE["ProjectiveTree"]
    arcs = scores_of(kind, 3)
    heads = kind.build(arcs).sample(generator=torch.Generator().manual_seed(0))

    def loss(part: Tensor, value: Tensor) -> Tensor:
        return kind.build(part).log_prob(value)

    found = torch.vmap(torch.func.grad(loss))(arcs, heads)
    for item in range(3):
        assert_close(found[item], torch.func.grad(loss)(arcs[item], heads[item]))


@pytest.mark.parametrize("name", sorted(set(EVERY) - PLAIN))
def test_derivatives_that_do_not_exist_are_errors(name: str) -> None:
    kind = EVERY[name]
    scores = scores_of(kind)
    with pytest.raises(DerivativeError, match="one more"):
        torch.func.hessian(lambda part: kind.build(part).marginals().sum())(scores)
    with pytest.raises(DerivativeError, match=r"cannot be nested.*hessian"):
        torch.func.jacfwd(torch.func.jacfwd(lambda part: total_of(name, part)))(scores)


@pytest.mark.parametrize("name", EVERY)
def test_searches_inside_vmap_are_errors(name: str) -> None:
    kind = EVERY[name]
    with pytest.raises(TransformError, match="whole batch"):
        torch.vmap(lambda part: kind.build(part).argmax())(scores_of(kind, 2))

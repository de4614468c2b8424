"""Every estimator works with every structure: shapes, values 0 and 1, and a finite gradient for
each potential. Other tests compare the estimates with enumeration.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from foveal.distributions import (
    AbstractDistribution,
    Alignment,
    Categorical,
    KSubset,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SpanningTree,
    SpanTree,
    Subset,
)
from foveal.estimators import perturb_and_map, score_function, straight_through

STRUCTURES: dict[str, tuple[Callable[..., AbstractDistribution], list[tuple[int, ...]]]] = {
    "Alignment": (Alignment, [(2, 4, 3, 3)]),
    "Categorical": (Categorical, [(2, 5)]),
    "KSubset": (lambda scores: KSubset(scores, 2), [(2, 5)]),
    "LinearChain": (LinearChain, [(2, 4, 3), (3, 3)]),
    "ProjectiveTree": (ProjectiveTree, [(2, 5, 5)]),
    "SemiMarkov": (SemiMarkov, [(2, 5, 3, 2), (2, 2)]),
    "SpanTree": (SpanTree, [(2, 4, 4)]),
    "SpanTree, labeled": (lambda spans: SpanTree(spans, labeled=True), [(2, 4, 4, 3)]),
    "SpanningTree": (SpanningTree, [(2, 5, 5)]),
    "Subset": (Subset, [(2, 5)]),
}


@pytest.fixture(params=STRUCTURES)
def structure(request: pytest.FixtureRequest) -> tuple[AbstractDistribution, list[Tensor]]:
    build, shapes = STRUCTURES[request.param]
    generator = torch.Generator().manual_seed(0)
    leaves = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    return build(*leaves), leaves


def assert_trains(result: Tensor, leaves: list[Tensor]) -> None:
    for grad in torch.autograd.grad(result, leaves):
        assert grad.isfinite().all()
        assert grad.any()


def weighed(parts: Tensor) -> Tensor:
    weights = torch.randn(parts.shape[-2:], generator=torch.Generator().manual_seed(3))
    return (parts * weights).sum()


def test_straight_through(structure: tuple[AbstractDistribution, list[Tensor]]) -> None:
    distribution, leaves = structure
    for value in (distribution.argmax(), distribution.sample((7,))):
        hard = straight_through(distribution, value)
        assert hard.shape[-distribution.marginals().ndim :] == distribution.marginals().shape
        assert ((hard == 0) | (hard == 1)).all()
        assert_trains(weighed(hard), leaves)


def test_score_function(structure: tuple[AbstractDistribution, list[Tensor]]) -> None:
    distribution, leaves = structure
    samples = distribution.sample((16,), generator=torch.Generator().manual_seed(1))
    rewards = torch.randn(16, 2, generator=torch.Generator().manual_seed(2))
    assert_trains(score_function(distribution, samples, rewards).sum(), leaves)


def test_perturb_and_map(structure: tuple[AbstractDistribution, list[Tensor]]) -> None:
    distribution, leaves = structure
    parts = perturb_and_map(distribution, 50, generator=torch.Generator().manual_seed(1))
    assert parts.shape == (50, *distribution.marginals().shape)
    assert ((parts == 0) | (parts == 1)).all()
    assert_trains(weighed(parts.mean(0)), leaves)

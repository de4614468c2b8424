"""The accuracy of the Triton kernels in float32 on long inputs with scores between -50 and 50.

Every error of a GPU is as large as it may be (`checked.approximate`). The truth is float64 by the
reference passes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from foveal.inference import (
    _triton,
    alignment_log_partition,
    alignment_marginals,
    chain_log_partition,
    chain_marginals,
    projective_log_partition,
    projective_marginals,
    semi_markov_log_partition,
    semi_markov_marginals,
    span_log_partition,
    span_marginals,
)
from tests.triton.checked import approximate
from tests.triton.structures import served, weights

MARGINALS, GRADIENTS = 1e-5, 3e-5


@contextmanager
def reference() -> Iterator[None]:
    """Use the reference passes inside."""
    with patch.object(_triton, "_IN_USE", False):
        yield


def wide(*shape: int) -> Tensor:
    return (torch.rand(shape, generator=torch.Generator().manual_seed(len(shape))) * 2 - 1) * 50


def results(
    log_partition: Callable[..., Tensor],
    marginals: Callable[..., tuple[Tensor, ...]],
    leaves: list[Tensor],
) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return log Z, the marginals, and the gradient of a random sum of them."""
    found = marginals(*leaves)
    total = sum(((part * weights(part)).sum() for part in found), torch.zeros(()))
    return log_partition(*leaves), found, torch.autograd.grad(total, leaves)


def check(
    log_partition: Callable[..., Tensor],
    marginals: Callable[..., tuple[Tensor, ...]],
    *given: Tensor,
) -> list[str]:
    """Compare the kernels in float32 with the reference in float64; return the launched kernels."""
    with served() as launched, approximate():
        found = results(log_partition, marginals, [part.requires_grad_() for part in given])
    with reference():
        doubles = [part.detach().double().requires_grad_() for part in given]
        truth = results(log_partition, marginals, doubles)
    torch.testing.assert_close(found[0].double(), truth[0], rtol=1e-6, atol=0)
    for which, tolerance in ((1, MARGINALS), (2, GRADIENTS)):
        for mine, true in zip(found[which], truth[which], strict=True):
            error = (mine.double() - true).abs().max().item()
            assert error < tolerance, f"{('marginals', 'gradients')[which - 1]} are off by {error}"
    return [name.rpartition(".")[2] for name in launched]


@pytest.mark.parametrize(("length", "states"), [(1000, 10), (1000, 2), (100, 20)])
def test_a_long_chain_is_accurate(length: int, states: int) -> None:
    launched = check(
        chain_log_partition,
        chain_marginals,
        wide(1, length, states),
        wide(1, length - 1, states, states),
    )
    assert ("scan" in launched) == (length == 1000)


def test_a_long_alignment_is_accurate() -> None:
    check(alignment_log_partition, lambda moves: (alignment_marginals(moves),), wide(1, 31, 31, 3))


def test_a_long_segmentation_is_accurate() -> None:
    launched = check(
        semi_markov_log_partition,
        semi_markov_marginals,
        wide(1, 150, 6, 5),
        wide(1, 149, 5, 5),
    )
    # One launch for all positions. log Z computes the marginals, too, because it needs a gradient.
    assert [launched.count(name) for name in ("inside", "sweep")] == [2, 4]


def test_a_tree_of_40_words_is_accurate() -> None:
    launched = check(
        projective_log_partition, lambda arcs: (projective_marginals(arcs),), wide(1, 41, 41)
    )
    # One launch for each width. log Z computes the marginals, too, because it needs a gradient.
    names = ("inside", "outside", "expect", "share_change")
    assert [launched.count(name) for name in names] == [2 * 39, 2 * 39, 39, 39]


def test_a_bracketing_of_40_words_is_accurate() -> None:
    launched = check(span_log_partition, lambda spans: (span_marginals(spans),), wide(1, 40, 40, 1))
    names = ("inside", "outside", "expect", "share_change")
    assert [launched.count(name) for name in names] == [2 * 40, 2 * 40, 39, 39]

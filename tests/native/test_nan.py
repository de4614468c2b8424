"""A NaN that is read makes only its item NaN, and an unread NaN has no effect."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from foveal import inference
from foveal.inference.chain._functions import chain_node_marginals

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

BATCH = 19  # more items than one register holds on any processor


class Case(NamedTuple):
    """A structure: the index of one of its scores, and its functions."""

    shapes: tuple[tuple[int, ...], ...]  # of the scores
    mask_size: int
    real: tuple[int, ...]  # index of a score that an item without padding reads
    log_partition: Callable[..., Tensor]
    marginals: Callable[..., Tensor]


def chain(states: int, shared: bool) -> Case:
    return Case(
        ((BATCH, 6, states), (1, 1, states, states) if shared else (BATCH, 5, states, states)),
        6,
        (2, states - 1),
        inference.chain_log_partition,
        chain_node_marginals if shared else lambda *x: inference.chain_marginals(*x)[1],
    )


def semi_markov(labels: int) -> Case:
    return Case(
        ((BATCH, 6, 3, labels), (1, 1, labels, labels)),
        6,
        (1, 1, labels - 1),
        inference.semi_markov_log_partition,
        lambda *x: inference.semi_markov_marginals(*x)[0],
    )


def tree(size: int, name: str, *, single_root: bool) -> Case:
    functions = [getattr(inference, f"{name}_{verb}") for verb in ("log_partition", "marginals")]
    return Case(
        ((BATCH, size + 1, size + 1),),
        size,
        (1, 2),
        *(lambda *x, f=f: f(*x, single_root=single_root) for f in functions),
    )


def alignment(verb: Callable[..., Tensor], moves: Tensor, mask: Tensor | None) -> Tensor:
    return verb(moves) if mask is None else verb(moves, mask[:, :3], mask[:, 3:])


CASES = {
    "chain of few states": chain(3, False),
    "chain of many states": chain(12, False),
    "shared chain of many states": chain(12, True),
    "semi-Markov, few labels": semi_markov(3),
    "semi-Markov, many labels": semi_markov(14),
    "projective": tree(6, "projective", single_root=True),
    "projective, many roots": tree(6, "projective", single_root=False),
    "spanning": tree(6, "spanning", single_root=True),
    "spanning, many roots": tree(6, "spanning", single_root=False),
    "span": Case(
        ((BATCH, 6, 6, 1),),
        6,
        (1, 3, 0),
        inference.span_log_partition,
        inference.span_marginals,
    ),
    "span with labels": Case(
        ((BATCH, 6, 6, 2),),
        6,
        (1, 3, 1),
        inference.span_log_partition,
        inference.span_marginals,
    ),
    "subset": Case(
        ((BATCH, 6),),
        6,
        (2,),
        lambda scores, mask: inference.k_subset_log_partition(scores, 2, mask),
        lambda scores, mask: inference.k_subset_marginals(scores, 2, mask),
    ),
    "alignment": Case(
        ((BATCH, 4, 5, 3),),
        7,
        (1, 2, 0),
        lambda moves, mask: alignment(inference.alignment_log_partition, moves, mask),
        lambda moves, mask: alignment(inference.alignment_marginals, moves, mask),
    ),
}


def drawn(case: Case, dtype: torch.dtype) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = [torch.randn(shape, generator=generator).to(dtype) for shape in case.shapes]
    mask = torch.rand(BATCH, case.mask_size, generator=generator) > 0.3
    mask[4] = True
    return scores, mask


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spoiler", [torch.nan, torch.inf])
def test_an_item_with_nan_is_nan_and_those_beside_it_are_not(
    name: str, dtype: torch.dtype, spoiler: float
) -> None:
    case = CASES[name]
    clean, mask = drawn(case, dtype)
    spoiled = [part.clone() for part in clean]
    spoiled[0][(4, *case.real)] = spoiler
    others = torch.arange(BATCH) != 4
    for function in (case.log_partition, case.marginals):
        expected = function(*clean, mask)
        found = function(*spoiled, mask)
        assert torch.equal(found[others], expected[others])
        assert torch.equal(found[4].isnan(), expected[4] != 0)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_an_item_with_nan_are_nan(name: str) -> None:
    case = CASES[name]
    scores, mask = drawn(case, torch.float32)
    scores[0][(4, *case.real)] = torch.nan
    others = torch.arange(BATCH) != 4
    leaves = [part.requires_grad_() for part in scores]
    found = case.marginals(*leaves, mask)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    for total in (case.log_partition(*leaves, mask).sum(), (found * weights).sum()):
        gradient = torch.autograd.grad(total, leaves, retain_graph=True)[0]
        assert gradient[(4, *case.real)].isnan()
        assert gradient[others].isfinite().all()


@pytest.mark.parametrize("name", CASES)
def test_nan_in_padding_changes_nothing(name: str) -> None:
    case = CASES[name]
    scores, mask = drawn(case, torch.float32)
    marginals = case.marginals(*scores, mask)
    unread = marginals == 0
    if unread.shape != scores[0].shape:  # a chain's pairs do not have the scores' shape
        unread = ~mask.unsqueeze(-1).expand(scores[0].shape)
    scores_with_nan = [torch.where(unread, torch.nan, scores[0]), *scores[1:]]
    assert unread.any()
    assert torch.equal(case.marginals(*scores_with_nan, mask), marginals)
    found = case.log_partition(*scores_with_nan, mask)
    assert torch.equal(found, case.log_partition(*scores, mask))


@pytest.mark.parametrize("states", [3, 12])
def test_a_table_that_no_step_reads_may_be_nan(states: int) -> None:
    """The gradient is 0, because no item has two positions."""
    unary = torch.randn(BATCH, 4, states, generator=torch.Generator().manual_seed(0))
    table = torch.full((1, 1, states, states), torch.nan).requires_grad_()
    mask = torch.arange(4).expand(BATCH, 4) == 2
    found = chain_node_marginals(unary, table, mask)
    torch.testing.assert_close(found[:, 2], unary[:, 2].softmax(-1))
    (gradient,) = torch.autograd.grad((found * torch.rand_like(found)).sum(), table)
    assert torch.equal(gradient, torch.zeros_like(gradient))

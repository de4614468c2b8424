"""Structures by the Triton kernels in the interpreter, compared with enumeration.

The items of all kinds of inputs form one batch, because the interpreter takes the same time for one item
and for many.
"""

from contextlib import nullcontext

import pytest
import torch

from tests.structures.inputs import case
from tests.structures.structures import KINDS, SINGLE
from tests.structures.verbs import VERBS
from tests.triton.structures import NAMES, exact, joined, served, weights

REGULAR = (
    "ordinary",
    "masked",
    "forbidden",
    "sentinel -10000",
    "sentinel -1e+09",
    "sentinel -1e+30",
    "sentinel -3.40282e+38",
)
# A program computes one item of an alignment: fewer inputs save time.
FEW = ("masked", "forbidden", "sentinel -1e+30")
WIDE = ("ordinary, double", "masked, double", "forbidden, double", "sentinel -1e+30, double")


def regular(name: str) -> tuple[str, ...]:
    return FEW if name.startswith("Alignment") else REGULAR


@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_sums_and_their_derivatives_are_those_of_enumeration(name: str, wide: bool) -> None:
    of = joined(name, WIDE if wide else regular(name))
    leaves = [part.clone().requires_grad_() for part in of.potentials]
    exact_leaves = [part.double().requires_grad_() for part in of.potentials]
    with served():
        distribution = of.make(leaves)
        log_partition, marginals = distribution.log_partition(), distribution.marginals()
    truths = of.truths(exact_leaves)
    expected = torch.stack([truth.log_partition for truth in truths])
    exact(log_partition, expected, name)
    true_marginals = torch.stack([truth.marginals() for truth in truths])
    exact(marginals, true_marginals, name)
    usual = log_partition.detach().abs() < 1e3  # float32 resolves larger sums to more than 1e-5
    for found, true, kernels in (
        (torch.where(usual, log_partition, 0.0), torch.where(usual, expected, 0.0), nullcontext()),
        (marginals, true_marginals, served()),
    ):
        weight = weights(found)
        with kernels:
            mine = torch.autograd.grad((found * weight).sum(), leaves, retain_graph=True)
        theirs = torch.autograd.grad(
            (true * weight.double()).sum(), exact_leaves, retain_graph=True
        )
        for gradient, truth in zip(mine, theirs, strict=True):
            exact(gradient, truth, f"gradient of {name}", scale=3)


@pytest.mark.parametrize("name", NAMES)
def test_a_labeling_of_the_highest_score_is_found(name: str) -> None:
    of = joined(name, regular(name))
    with served():
        found = of.make(of.potentials).argmax()
    VERBS["argmax"].check(found, of.own_truths, of.own_truths)


@pytest.mark.parametrize("name", NAMES)
def test_samples_have_their_frequencies(name: str) -> None:
    of = joined(name, regular(name)[:3])
    with served():
        found = VERBS["sample"].run(of.make(of.potentials), None, torch.empty(0))
    VERBS["sample"].check(found, of.own_truths, of.own_truths)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_part(name: str) -> None:
    assert SINGLE[name].shapes != KINDS[name].shapes
    of = case(name, "single")
    with served():
        distribution = of.make(of.potentials)
        found = distribution.log_partition(), distribution.marginals(), distribution.argmax()
    for verb, part in zip(("log_partition", "marginals", "argmax"), found, strict=True):
        VERBS[verb].check(part, of.own_truths, of.own_truths)


@pytest.mark.parametrize("name", NAMES)
def test_impossible_items_and_nan_do_not_touch_the_others(name: str) -> None:
    impossible, spoiled = case(name, "impossible"), case(name, "NaN")
    if impossible.kind.shared:
        pytest.skip("the items of both inputs share potentials")
    potentials = [
        torch.cat(pair).requires_grad_()
        for pair in zip(impossible.potentials, spoiled.potentials, strict=True)
    ]
    with served():
        distribution = spoiled.kind.make(*potentials, *(None for _ in spoiled.masks))
        log_partition, marginals = distribution.log_partition(), distribution.marginals()
        total = (marginals * weights(marginals)).sum()
        gradients = torch.autograd.grad(total, potentials)
    items = len(impossible.masks[0])
    assert (log_partition[:items] == -torch.inf).all()
    assert log_partition[items].isnan()
    assert not marginals[:items].any()
    truth = torch.stack([truth.marginals() for truth in spoiled.own_truths[1:]])
    exact(marginals[items + 1 :], truth, name)
    read = impossible.kind.listed(tuple(mask[0] for mask in spoiled.masks)).marks.any(0)
    assert marginals[items][read].isnan().all()
    for gradient in gradients:
        assert not gradient[:items].any()
        assert gradient[items].isnan().any()
        assert gradient[items + 1 :].isfinite().all()

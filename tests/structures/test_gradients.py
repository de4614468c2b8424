"""Gradients of every differentiable verb match autograd through enumeration in float64."""

import pytest
import torch
from torch import Tensor

from tests.structures.inputs import Case, case
from tests.structures.structures import KINDS
from tests.structures.truth import Truth
from tests.structures.verbs import NUM_RANKS, log_partition, values_of

pytestmark = pytest.mark.slow

DENSE = [name for name, kind in KINDS.items() if not kind.is_sparse]
# tests/distributions/test_sparse.py has finite differences for SparseChain: enumeration takes
# minutes.
SPARSE = ["Sparsemax", "Entmax 1.5", "Entmax 1.3"]
VERBS = ("log_partition", "log_prob", "marginals", "entropy", "cross_entropy", "kl", "topk")
INPUTS = (
    "ordinary",
    "masked",
    "masked, double",
    "forbidden",
    "sentinel -1e+09",
    "sentinel -1e+30",
    "sentinel -3.40282e+38",
    "single",
)


def weights(shape: torch.Size) -> Tensor:
    return torch.linspace(-1, 2, shape.numel(), dtype=torch.float64).sin().reshape(shape)


def answer(of: Case, verb: str, potentials: list[Tensor], values: Tensor) -> Tensor:
    """Return the result of the library."""
    distribution = of.make(potentials)
    if verb == "log_partition":
        return log_partition(distribution)
    if verb == "log_prob":
        return distribution.log_prob(values)
    if verb in ("cross_entropy", "kl"):
        return getattr(distribution, verb)(of.make(of.others))
    found = getattr(distribution, verb)(*([NUM_RANKS] if verb == "topk" else []))
    return found.log_probs if verb == "topk" else found


def truth_of(verb: str, truth: Truth, other: Truth) -> Tensor:
    """Return the result of enumeration for one item."""
    if verb == "log_partition":
        return truth.log_partition
    if verb == "log_prob":
        return truth.log_probs
    if verb in ("cross_entropy", "kl"):
        return getattr(truth, verb)(other)
    if verb == "topk":
        best = truth.log_probs.sort(descending=True).values[:NUM_RANKS]
        return torch.cat([best, best.new_full((NUM_RANKS - len(best),), -torch.inf)])
    return getattr(truth, verb)()


def gradients(total: Tensor, potentials: list[Tensor]) -> list[Tensor]:
    found = torch.autograd.grad(total, potentials, allow_unused=True, materialize_grads=True)
    return [gradient.double() for gradient in found]


def weighted(found: Tensor) -> Tensor:
    """Sum the entries that are finite and small enough for float32 to resolve, with weights."""
    usable = found.isfinite() & (found.detach().abs() < 1e3)
    return (weights(found.shape) * torch.where(usable, found.double(), 0.0)).sum()


def live(potentials: list[Tensor]) -> list[Tensor]:
    return [part.clone().requires_grad_() for part in potentials]


def expected_gradients(of: Case, verb: str) -> list[Tensor]:
    potentials = live([part.double() for part in of.potentials])
    truths, others = of.truths(potentials), of.other_truths
    rows = [truth_of(verb, *pair) for pair in zip(truths, others, strict=True)]
    count = max(map(len, rows)) if verb == "log_prob" else 0
    if verb == "log_prob":  # padded as by `values_of`
        rows = [torch.cat([row, row[:1].expand(count - len(row))]) for row in rows]
    whole = torch.stack(rows, 1 if verb in ("log_prob", "topk") else 0)
    return gradients(weighted(whole), potentials)


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", DENSE)
def test_gradients_are_those_of_enumeration(name: str, verb: str, inputs: str) -> None:
    of = case(name, inputs)
    potentials = live(of.potentials)
    found = gradients(weighted(answer(of, verb, potentials, values_of(of))), potentials)
    tolerance = 1e-8 if potentials[0].dtype == torch.float64 else 3e-5
    for mine, truth in zip(found, expected_gradients(of, verb), strict=True):
        torch.testing.assert_close(mine, truth, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("verb", ["log_partition", "marginals", "entropy"])
@pytest.mark.parametrize("name", KINDS)
def test_where_nothing_is_possible_gradients_are_0(name: str, verb: str) -> None:
    of = case(name, "impossible")
    potentials = live(of.potentials)
    found = answer(of, verb, potentials, values_of(of))
    for gradient in gradients(weighted(found), potentials):
        assert not gradient.any()


@pytest.mark.parametrize("verb", ["log_partition", "marginals", "entropy"])
@pytest.mark.parametrize("name", DENSE)
def test_gradients_of_what_is_not_a_number_are_not_either(name: str, verb: str) -> None:
    of = case(name, "NaN")
    potentials = live(of.potentials)
    total = answer(of, verb, potentials, values_of(of)).sum()
    gradient = gradients(total, potentials)[0]
    assert gradient[0].isnan().any()
    assert gradient[1:].isfinite().all()


@pytest.mark.parametrize("inputs", ["ordinary, double", "masked, double"])
@pytest.mark.parametrize("verb", ["log_partition", "marginals"])
@pytest.mark.parametrize("name", SPARSE)
def test_gradients_of_sparse_distributions_are_differences(
    name: str, verb: str, inputs: str
) -> None:
    of = case(name, inputs)
    potentials = live(of.potentials)
    found = gradients(weighted(answer(of, verb, potentials, values_of(of))), potentials)

    def moved(part: int, place: int, by: float) -> Tensor:
        changed = [each.detach().clone() for each in potentials]
        changed[part].view(-1)[place] += by
        rows = [truth_of(verb, truth, truth) for truth in of.truths(changed)]
        return weighted(torch.stack(rows))

    for part, gradient in enumerate(found):
        for place, mine in enumerate(gradient.flatten().tolist()):
            truth = (moved(part, place, 1e-5) - moved(part, place, -1e-5)) / 2e-5
            assert mine == pytest.approx(truth.item(), abs=1e-6)

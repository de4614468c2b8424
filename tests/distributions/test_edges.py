"""Edge cases of every distribution: NaN, no items, wrong shapes, autocast, mixed dtypes."""

import gc
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from foveal.batch_invariant import linear
from foveal.distributions import (
    AbstractDistribution,
    Categorical,
    KSubset,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SparseChain,
    Subset,
)
from foveal.errors import NonFiniteError, ShapeError, ValueRangeError
from foveal.inference import spanning_best

from .every_distribution import DENSE, SPARSE, scores_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.usefixtures("path")
def test_nan_in_is_nan_out(name: str) -> None:
    kind = DENSE[name]
    scores = scores_of(kind, 2)
    scores[(0, *kind.read)] = torch.nan
    distribution = kind.build(scores.requires_grad_())
    marginals = distribution.marginals()
    (gradient,) = torch.autograd.grad(marginals.square().sum(), scores)
    for found in (distribution.log_partition(), marginals, distribution.entropy(), gradient):
        assert found[0].isnan().any(), "NaN has been hidden"
        assert found[1].isfinite().all(), "NaN has reached another item"
    for verb in (distribution.argmax, distribution.sample, lambda: distribution.topk(2)):
        with pytest.raises(
            NonFiniteError, match=r"NaN.*1 of 2 batch items, the first at index \[0\]"
        ):
            verb()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.usefixtures("path")
def test_sparse_distributions_of_nan_and_inf_are_nan(name: str, bad: float) -> None:
    kind = SPARSE[name]
    scores = scores_of(kind, 2)
    scores[(0, *kind.read)] = bad
    distribution = kind.build(scores.requires_grad_())
    marginals = distribution.marginals()
    (gradient,) = torch.autograd.grad(marginals.square().sum(), scores)
    for found in (distribution.smoothed_max(), marginals, distribution.entropy(), gradient):
        assert found[0].isnan().any()
        assert found[1].isfinite().all()
    with pytest.raises(NonFiniteError, match="NaN"):
        distribution.argmax()


def test_a_search_over_nan_ends() -> None:
    for seed in range(20):
        arcs = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(seed))
        arcs[0, 1, 2] = torch.nan
        assert spanning_best(arcs, single_root=False, k=2).heads.shape == (2, 2, 4)


@pytest.mark.parametrize("batch", [(0,), (2, 0, 3)])
@pytest.mark.parametrize("name", DENSE)
@pytest.mark.usefixtures("path")
def test_empty_batches(name: str, batch: tuple[int, ...]) -> None:
    kind = DENSE[name]
    scores = scores_of(kind, *batch).float().requires_grad_()
    distribution = kind.build(scores)
    value = distribution.argmax()
    event = tuple(kind.build(scores_of(kind)).argmax().shape)
    assert value.shape == (*batch, *event)
    assert distribution.topk(2).values.shape == (2, *batch, *event)
    assert distribution.sample((3,)).shape == (3, *batch, *event)
    marginals = distribution.marginals()
    assert marginals.shape == (*batch, *kind.event)
    (gradient,) = torch.autograd.grad(marginals.sum(), scores)
    assert gradient.shape == scores.shape
    for found in (
        distribution.log_partition(),
        distribution.log_prob(value),
        distribution.entropy(),
    ):
        assert found.shape == batch
    assert distribution.kl(distribution).shape == batch


@pytest.mark.parametrize("name", SPARSE)
def test_empty_batches_of_sparse_distributions(name: str) -> None:
    kind = SPARSE[name]
    distribution = kind.build(scores_of(kind, 0))
    assert distribution.marginals().shape == (0, *kind.event)
    assert distribution.smoothed_max().shape == (0,)
    assert distribution.sample((2,)).shape[:2] == (2, 0)
    assert distribution.entropy().shape == (0,)


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.usefixtures("path")
def test_no_samples(name: str) -> None:
    distribution = DENSE[name].build(scores_of(DENSE[name], 2))
    assert distribution.sample((0,)).shape == (0, *distribution.argmax().shape)


def test_a_linear_layer_takes_no_rows() -> None:
    with torch.no_grad():
        assert linear(torch.zeros(0, 5, 3), torch.zeros(2, 3)).shape == (0, 5, 2)


@pytest.mark.parametrize("name", DENSE)
def test_values_of_another_shape_are_refused(name: str) -> None:
    distribution = DENSE[name].build(scores_of(DENSE[name], 2))
    value = distribution.argmax()
    wrong = [value.float(), torch.cat([value, value[:1]])]  # a third item, for a batch of two
    if value.ndim > 1:
        wrong += [value[:, :-1], torch.cat([value, value], 1), value[:, :1]]
    for other in wrong:
        with pytest.raises(ShapeError, match="a value must"):
            distribution.log_prob(other)
    assert distribution.log_prob(value[:1]).shape == (2,)  # one value for both items


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.usefixtures("path")
def test_topk_has_the_gradient_of_log_prob(name: str) -> None:
    kind = DENSE[name]
    scores = scores_of(kind, 2).requires_grad_()
    distribution = kind.build(scores)
    found = distribution.topk(2)
    expected = distribution.log_prob(found.values)
    assert_close(found.log_probs, expected)
    weights = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    gradients = [
        torch.autograd.grad((weights * part).sum(), scores)[0]
        for part in (found.log_probs, expected)
    ]
    assert_close(*gradients)


def test_topk_beyond_the_last_structure_passes_no_gradient() -> None:
    scores = torch.tensor([[0.0, -torch.inf], [-torch.inf, -torch.inf]], requires_grad=True)
    log_probs = Categorical(scores).topk(3).log_probs
    assert log_probs.tolist() == [[0.0, -torch.inf], [-torch.inf] * 2, [-torch.inf] * 2]
    (gradient,) = torch.autograd.grad(log_probs[0, 0], scores)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", DENSE)
def test_cross_entropy_with_an_impossible_distribution_is_infinite(name: str) -> None:
    kind = DENSE[name]
    if name == "Subset":
        pytest.skip("the empty subset is always possible")
    one = kind.build(scores_of(kind))
    impossible = kind.build(torch.full(kind.event, -torch.inf, dtype=torch.float64))
    assert one.cross_entropy(impossible) == torch.inf
    assert one.kl(impossible) == torch.inf
    assert impossible.kl(one) == 0
    assert impossible.kl(impossible) == 0


@pytest.mark.usefixtures("path")
def test_autocast_changes_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    unary = torch.randn(4, 30, 5, generator=generator, requires_grad=True)
    segments = torch.randn(4, 30, 3, 5, generator=generator, requires_grad=True)
    table = torch.randn(5, 5, generator=generator)
    for distribution, scores in (
        (LinearChain(unary, table), unary),
        (SemiMarkov(segments, table), segments),
        (SparseChain(unary, table), unary),
    ):
        found = []
        for enabled in (False, True):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                marginals = distribution.marginals()
                (gradient,) = torch.autograd.grad(marginals.square().sum(), scores)
            found.append((marginals, gradient))
        assert torch.equal(found[0][0], found[1][0])
        assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("narrow", ["first", "second"])
def test_mixed_dtypes_give_the_wider_one(narrow: str) -> None:
    def build(first: Tensor, second: Tensor) -> list[AbstractDistribution]:
        return [LinearChain(first[:, 0], second), SemiMarkov(first, second)]

    first, second = torch.randn(3, 2, 2), torch.randn(2, 2)
    mixed = (first.double(), second) if narrow == "second" else (first, second.double())
    for found, wide in zip(build(*mixed), build(first.double(), second.double()), strict=True):
        value = wide.argmax()
        for verb in ("log_partition", "marginals", "entropy"):
            assert_close(getattr(found, verb)(), getattr(wide, verb)())
        assert_close(found.log_prob(value), wide.log_prob(value))
        assert_close(found.topk(2).log_probs, wide.topk(2).log_probs)


@pytest.mark.usefixtures("path")
def test_log_probabilities_in_float32_keep_their_digits() -> None:
    generator = torch.Generator().manual_seed(0)
    unary = torch.rand(2, 1000, 5, generator=generator) * 100 - 50
    transitions = torch.rand(5, 5, generator=generator) * 100 - 50
    chain = LinearChain(unary, transitions)
    value = chain.sample(generator=generator)
    expected = LinearChain(unary.double(), transitions.double()).log_prob(value)
    assert chain.log_prob(value).dtype == torch.float32
    assert_close(chain.log_prob(value).double(), expected, rtol=1e-6, atol=1e-6)
    best = chain.topk(1)
    assert_close(
        best.log_probs.double(),
        LinearChain(unary.double(), transitions.double()).log_prob(best.values),
        rtol=1e-6,
        atol=1e-6,
    )


def test_a_subset_in_float64_is_exact_at_high_scores() -> None:
    scores = torch.tensor([20.5], dtype=torch.float64, requires_grad=True)
    subset = Subset(scores)
    log_partition = subset.log_partition()
    assert_close(log_partition - 20.5, torch.exp(-scores).log1p().sum(), rtol=1e-6, atol=0)
    (gradient,) = torch.autograd.grad(log_partition, scores)
    assert_close(gradient, subset.marginals(), rtol=1e-15, atol=0)
    # H = log(1 + e^-x) + x e^-x / (1 + e^-x), by hand for x = 20.5
    assert_close(subset.entropy().item(), 2.6878e-8, rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", DENSE)
def test_entropy_and_divergence_are_never_negative(name: str) -> None:
    kind = DENSE[name]
    huge = kind.build(scores_of(kind, 20) * 1e15)
    other = kind.build(scores_of(kind, 20, seed=1) * 1e15)
    assert (huge.entropy() >= 0).all()
    assert (huge.kl(other) >= 0).all()


@pytest.mark.usefixtures("path")
def test_samples_of_trees_that_require_grad_leave_nothing_behind() -> None:
    arcs = torch.randn(2, 6, 6, requires_grad=True)
    before = _num_tensors(lambda: None)
    after = _num_tensors(lambda: ProjectiveTree(arcs).sample())
    assert after <= before, f"{after - before} tensors are kept after 5 calls"


def _num_tensors(call: object) -> int:
    assert callable(call)
    for _ in range(5):
        call()
    gc.collect()
    return sum(type(found) is Tensor for found in gc.get_objects())


@pytest.mark.parametrize("k", [-1, 2**62, True])
def test_k_must_be_a_number_of_items(k: int) -> None:
    with pytest.raises(ValueRangeError, match="must be an integer"):
        KSubset(torch.zeros(3), k)


@pytest.mark.usefixtures("path")
def test_more_items_than_there_are_cost_no_memory() -> None:
    chosen = KSubset(torch.zeros(3), 10**9)
    assert chosen.log_partition() == -torch.inf
    assert not chosen.marginals().any()
    assert (chosen.topk(2).log_probs == -torch.inf).all()


def test_repr_shows_shapes_and_not_entries() -> None:
    chain = LinearChain(torch.zeros(4, 100, 5), torch.zeros(5, 5), torch.ones(4, 100).bool())
    assert repr(chain) == (
        "LinearChain(unary=float32[4, 100, 5], transitions=float32[5, 5], mask=bool[4, 100], "
        "start=None, end=None, device=cpu)"
    )
    tree = ProjectiveTree(torch.zeros(3, 3, dtype=torch.float64))
    assert repr(tree) == (
        "ProjectiveTree(arcs=float64[3, 3], single_root=True, mask=None, device=cpu)"
    )
    chain = SparseChain(torch.zeros(3, 2), torch.zeros(2, 2), alpha=1.5)
    assert repr(chain) == (
        "SparseChain(unary=float32[3, 2], transitions=float32[2, 2], mask=None, alpha=1.5, "
        "device=cpu)"
    )


@pytest.mark.parametrize("name", DENSE)
def test_to_detach_and_index(name: str) -> None:
    kind = DENSE[name]
    scores = scores_of(kind, 4, 3).requires_grad_()
    distribution = kind.build(scores)
    narrow = distribution.to(torch.float32)
    assert type(narrow) is type(distribution)
    assert {part.dtype for part in narrow.log_potentials().values()} == {torch.float32}
    assert distribution.to("meta").batch_shape == (4, 3)
    assert not distribution.detach().marginals().requires_grad
    whole = distribution.marginals()
    for index in (
        1,
        slice(1, 3),
        (2, 0),
        (slice(None), 1),
        torch.tensor([3, 0]),
        whole.new_ones(4).bool(),
    ):
        assert torch.equal(distribution[index].marginals(), whole[index])
    with pytest.raises(IndexError):
        distribution[4]
    with pytest.raises(IndexError, match="unsqueeze"):
        distribution[0, 0][0]


def test_index_of_masks_and_of_shared_and_separate_transitions() -> None:
    unary, separate = torch.randn(4, 3, 2), torch.randn(4, 2, 2, 2)
    mask = torch.tensor([True, False, True])
    for chain in (
        LinearChain(unary, separate, mask),
        LinearChain(unary, separate[0], mask),
        LinearChain(unary, separate[0, 0], mask.expand(4, 3)),
        LinearChain(unary[0], separate, mask),
        LinearChain(unary, separate, mask, torch.randn(2), torch.randn(4, 2)),
    ):
        assert torch.equal(chain[1:3].marginals(), chain.marginals()[1:3])
        sparse = SparseChain(chain.unary, chain.transitions, chain.mask)
        assert torch.equal(sparse[2].marginals(), sparse.marginals()[2])
    moved = replace(chain, mask=mask).to(torch.float64)
    assert moved.mask is not None
    assert moved.mask.dtype == torch.bool

"""ProjectiveTree against the laws, against counts of trees, and against float64."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor
from torch.testing import assert_close

from foveal.distributions import ProjectiveTree, SpanningTree
from foveal.errors import DerivativeError, ImpossibleError, ShapeError, ValueRangeError
from foveal.testing import check_distribution

pytestmark = pytest.mark.slow


def is_projective_tree(heads: tuple[int, ...]) -> bool:
    """Return whether the heads of words 1..n (0 is the root) form a tree without crossing arcs."""
    for word in range(1, len(heads) + 1):
        above, steps = word, 0
        while above != 0:
            above, steps = heads[above - 1], steps + 1
            if steps > len(heads):
                return False
    arcs = [(min(h, d), max(h, d)) for d, h in enumerate(heads, start=1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def all_heads(num_words: int, *, single_root: bool) -> list[tuple[int, ...]]:
    every = product(range(num_words + 1), repeat=num_words)
    return [
        heads
        for heads in every
        if is_projective_tree(heads) and (not single_root or num_words == 0 or heads.count(0) == 1)
    ]


def trees(
    arcs: Tensor, mask: Tensor | None, *, single_root: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    num_words = len(arcs) - 1
    real = [d for d in range(1, num_words + 1) if mask is None or mask[d - 1]]
    for heads in all_heads(len(real), single_root=single_root):
        value = torch.full((num_words,), -1)
        score = arcs.new_zeros(())
        for word, head in zip(real, heads, strict=True):
            value[word - 1] = 0 if head == 0 else real[head - 1]
            score = score + arcs[value[word - 1], word]
        yield value, score


def check_laws(arcs: Tensor, mask: Tensor | None, *, single_root: bool) -> None:
    build = partial(ProjectiveTree, single_root=single_root)
    check_distribution(build, [arcs], mask, structures=partial(trees, single_root=single_root))


@settings(max_examples=5, deadline=None, derandomize=True)
@given(
    st.integers(1, 3),
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=2, max_size=2),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_the_laws(
    num_words: int, bits: list[list[bool]], masked: bool, single_root: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    mask = torch.tensor(bits)[:, :num_words] if masked else None
    arcs = torch.randn(2, num_words + 1, num_words + 1, dtype=torch.float64)
    check_laws(arcs, mask, single_root=single_root)


@pytest.mark.parametrize("single_root", [True, False])
def test_the_laws_of_four_words(single_root: bool) -> None:
    torch.manual_seed(4)
    check_laws(torch.randn(1, 5, 5, dtype=torch.float64), None, single_root=single_root)


def test_the_laws_of_five_words_with_a_hole() -> None:
    torch.manual_seed(5)
    mask = torch.tensor([[True, True, False, True, True], [False, True, False, False, True]])
    check_laws(torch.randn(2, 6, 6, dtype=torch.float64), mask, single_root=True)


@pytest.mark.parametrize("single_root", [True, False])
def test_every_mask_of_five_words(single_root: bool) -> None:
    torch.manual_seed(6)
    mask = torch.tensor(list(product([False, True], repeat=5)))
    arcs = torch.randn(6, 6, dtype=torch.float64)
    tree = ProjectiveTree(arcs, single_root=single_root, mask=mask)
    log_partitions, marginals, best = tree.log_partition(), tree.marginals(), tree.argmax()
    for item, real in enumerate(mask):
        values, scores = zip(*trees(arcs, real, single_root=single_root), strict=True)
        stacked = torch.stack(scores)
        assert_close(log_partitions[item], stacked.logsumexp(0))
        assert torch.equal(best[item], values[int(stacked.argmax())])
        expected = torch.zeros(6, 6, dtype=torch.float64)
        for value, probability in zip(values, stacked.softmax(0), strict=True):
            for word, head in enumerate(value.tolist(), start=1):
                if head >= 0:
                    expected[head, word] += probability
        assert_close(marginals[item], expected)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("num_words", [1, 2, 3, 4, 5])
def test_the_number_of_trees(num_words: int, single_root: bool) -> None:
    arcs = torch.zeros(num_words + 1, num_words + 1, dtype=torch.float64)
    tree = ProjectiveTree(arcs, single_root=single_root)
    expected = len(all_heads(num_words, single_root=single_root))
    assert_close(tree.log_partition().exp().item(), float(expected))
    assert (tree.topk(expected + 1).log_probs > -torch.inf).sum() == expected


def test_an_empty_sentence_has_one_tree() -> None:
    tree = ProjectiveTree(torch.randn(3, 3), mask=torch.tensor([False, False]))
    assert tree.log_partition() == 0
    assert not tree.marginals().any()
    assert tree.argmax().tolist() == tree.sample().tolist() == [-1, -1]


def test_no_tree_at_all() -> None:
    arcs = torch.zeros(2, 3, 3)
    arcs[0, 0] = -torch.inf  # no word can attach to the root
    tree = ProjectiveTree(arcs.requires_grad_())
    assert tree.log_partition().tolist()[0] == -torch.inf
    (grad,) = torch.autograd.grad(tree.marginals().square().sum(), arcs)
    assert not tree.marginals()[0].any()
    assert not grad[0].any()
    for verb in (tree.argmax, tree.sample):
        with pytest.raises(ImpossibleError, match=r"index \[0\]"):
            verb()


def gradient_through_marginals(arcs: Tensor, upstream: Tensor, *, single_root: bool) -> Tensor:
    leaf = arcs.clone().requires_grad_()
    marginals = ProjectiveTree(leaf, single_root=single_root).marginals()
    return torch.autograd.grad((marginals * upstream).sum(), leaf)[0]


@pytest.mark.parametrize("single_root", [True, False])
def test_pytorch_struct_issue_72(single_root: bool) -> None:
    # harvardnlp/pytorch-struct#72: the largest gradient was 19.6, but the maximum possible is 12.5;
    # the true value is about 0.16.
    torch.manual_seed(0)
    arcs, upstream = torch.randn(4, 51, 51), torch.rand(4, 51, 51)
    narrow = gradient_through_marginals(arcs, upstream, single_root=single_root)
    wide = gradient_through_marginals(arcs.double(), upstream.double(), single_root=single_root)
    assert 0.1 < wide.abs().max() < 0.3
    assert_close(narrow.double(), wide, rtol=0, atol=1e-6)


@pytest.mark.parametrize("single_root", [True, False])
def test_float32_at_large_scores(single_root: bool) -> None:
    torch.manual_seed(1)
    arcs = torch.rand(2, 81, 81) * 100 - 50
    upstream = torch.randn(2, 81, 81)
    tree = ProjectiveTree(arcs, single_root=single_root)
    wide = ProjectiveTree(arcs.double(), single_root=single_root)
    assert_close(tree.marginals().double(), wide.marginals(), rtol=0, atol=3e-5)
    narrow = gradient_through_marginals(arcs, upstream, single_root=single_root)
    exact = gradient_through_marginals(arcs.double(), upstream.double(), single_root=single_root)
    assert_close(narrow.double(), exact, rtol=0, atol=5e-5)


def test_a_third_derivative_is_an_error() -> None:
    arcs = torch.randn(3, 3, requires_grad=True)
    marginals = ProjectiveTree(arcs).marginals()
    (grad,) = torch.autograd.grad(marginals.square().sum(), arcs, create_graph=True)
    with pytest.raises(DerivativeError, match="projective tree"):
        grad.sum().backward()


def test_vmap_gives_what_a_batch_gives() -> None:
    torch.manual_seed(2)
    arcs = torch.randn(3, 2, 4, 4, dtype=torch.float64)
    mask = torch.tensor([True, False, True])

    def loss(scores: Tensor) -> Tensor:
        tree = ProjectiveTree(scores, mask=mask)
        return tree.marginals().square().sum() + tree.log_partition().sum()

    separate = torch.stack([torch.func.grad(loss)(item) for item in arcs])
    assert_close(torch.func.vmap(torch.func.grad(loss))(arcs), separate)


def test_samples_of_a_long_sentence_are_trees() -> None:
    torch.manual_seed(3)
    for single_root in (True, False):
        tree = ProjectiveTree(torch.randn(2, 31, 31), single_root=single_root)
        drawn = tree.sample((50,))
        assert tree.log_prob(drawn).isfinite().all()  # `log_prob` checks each tree
        ranked = tree.topk(5)
        assert_close(tree.log_prob(ranked.values), ranked.log_probs, rtol=1e-4, atol=1e-4)
        assert torch.equal(ranked.values[0], tree.argmax())


@pytest.mark.parametrize(
    ("heads", "single_root"),
    [
        ([2, 1, 0], True),  # a cycle
        ([0, 0, 2], True),  # two roots
        ([3, 0, 0], False),  # 0 -> 2 crosses 3 -> 1
        ([1, 0, 2], False),  # its own head
    ],
)
def test_heads_that_are_no_tree_have_no_score(heads: list[int], single_root: bool) -> None:
    tree = ProjectiveTree(torch.zeros(4, 4), single_root=single_root)
    with pytest.raises(ValueRangeError, match="arcs may not cross"):
        tree.log_prob(torch.tensor(heads))


@pytest.mark.parametrize("kind", [ProjectiveTree, SpanningTree])
@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ([2, 0, -1], True),
        ([2, 0, 99], True),  # padding may hold anything
        ([2, 1, -1], False),  # a cycle
        ([3, 0, -1], False),  # padding
        ([4, 0, -1], False),  # no word
        ([-1, 0, -1], False),
        ([-1, -1, -1], False),
    ],
)
def test_heads_that_are_no_tree_are_not_allowed(
    kind: type[ProjectiveTree | SpanningTree], heads: list[int], expected: bool
) -> None:
    tree = kind(torch.zeros(4, 4), mask=torch.tensor([True, True, False]))
    assert tree.allows(torch.tensor([heads, [0, 1, -1]])).tolist() == [expected, True]


def test_a_head_that_is_padding_has_no_score() -> None:
    tree = ProjectiveTree(torch.zeros(3, 3), mask=torch.tensor([True, False]))
    with pytest.raises(ValueRangeError, match="padding"):
        tree.log_prob(torch.tensor([2, -1]))


def test_a_sentence_has_words() -> None:
    with pytest.raises(ShapeError, match="root at index 0"):
        ProjectiveTree(torch.zeros(1, 1))

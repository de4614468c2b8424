"""SpanTree against the laws, Catalan numbers, and float64 at n = 80."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from foveal.distributions import SpanTree
from foveal.errors import ShapeError
from foveal.testing import check_distribution

pytestmark = pytest.mark.slow

laws = settings(max_examples=6, deadline=None, derandomize=True)
few_laws = settings(laws, max_examples=4)


def brackets(words: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Enumerate the spans of every binary tree over these words."""
    if len(words) < 2:
        yield [(word, word) for word in words]
        return
    for cut in range(1, len(words)):
        for left, right in product(brackets(words[:cut]), brackets(words[cut:])):
            yield [(words[0], words[-1]), *left, *right]


def labeled_trees(spans: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    num_words, _, num_labels = spans.shape
    real = [i for i in range(num_words) if mask is None or mask[i]]
    for tree in brackets(real):
        for labels in product(range(num_labels), repeat=len(tree)):
            value = torch.zeros(spans.shape, dtype=torch.bool)
            score = spans.new_zeros(())
            for (i, j), label in zip(tree, labels, strict=True):
                value[i, j, label] = True
                score = score + spans[i, j, label]
            yield value, score


def trees(spans: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    for value, score in labeled_trees(spans.unsqueeze(-1), mask):
        yield value.squeeze(-1), score


@st.composite
def masks(draw: st.DrawFn, batch: int, size: int) -> Tensor | None:
    """None, or any pattern: right padding, left padding, holes, only padding."""
    if draw(st.booleans()):
        return None
    bits = draw(st.lists(st.booleans(), min_size=batch * size, max_size=batch * size))
    return torch.tensor(bits).reshape(batch, size)


@laws
@given(st.data(), st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_bracketings(data: st.DataObject, batch: int, num_words: int, seed: int) -> None:
    mask = data.draw(masks(batch, num_words))
    torch.manual_seed(seed)
    spans = torch.randn(batch, num_words, num_words, dtype=torch.float64)
    check_distribution(SpanTree, [spans], mask, structures=trees)


@few_laws
@given(st.data(), st.integers(1, 2), st.integers(1, 3), st.integers(0, 99))
def test_labelled_bracketings(data: st.DataObject, batch: int, num_words: int, seed: int) -> None:
    mask = data.draw(masks(batch, num_words))
    torch.manual_seed(seed)
    spans = torch.randn(batch, num_words, num_words, 2, dtype=torch.float64)
    build = partial(SpanTree, labeled=True)
    check_distribution(build, [spans], mask, structures=labeled_trees)


def test_trees_are_counted_by_catalan_numbers() -> None:
    catalan = [1, 1, 2, 5, 14, 42, 132, 429, 1430, 4862]
    for num_words, count in enumerate(catalan, start=1):
        tree = SpanTree(torch.zeros(num_words, num_words, dtype=torch.float64))
        assert tree.log_partition().exp().item() == pytest.approx(count, rel=1e-12)
    labeled = SpanTree(torch.zeros(4, 4, 3, dtype=torch.float64), labeled=True)
    assert labeled.log_partition().exp().item() == pytest.approx(5 * 3**7, rel=1e-12)


@pytest.mark.parametrize("labels", [None, 3])
def test_float32_is_close_to_float64_for_80_words(labels: int | None) -> None:
    torch.manual_seed(0)
    shape = (2, 80, 80) if labels is None else (2, 80, 80, labels)
    spans = torch.empty(shape).uniform_(-50, 50)
    upstream = torch.randn(shape)
    found = []
    for dtype in (torch.float32, torch.float64):
        leaf = spans.to(dtype).requires_grad_()
        marginals = SpanTree(leaf, labeled=labels is not None).marginals()
        (grad,) = torch.autograd.grad((marginals * upstream.to(dtype)).sum(), leaf)
        found.append((marginals.detach().double(), grad.double()))
    (marginals, grad), (true_marginals, true_grad) = found
    assert (marginals - true_marginals).abs().max() < 3e-5
    assert (grad - true_grad).abs().max() < 5e-5


def test_k_best_is_exact_for_more_words_than_can_be_listed_in_the_laws() -> None:
    torch.manual_seed(0)
    spans = torch.randn(7, 7, dtype=torch.float64)
    scores = torch.stack([score for _, score in trees(spans, None)])
    tree = SpanTree(spans)
    values, log_probs = tree.topk(40)
    expected = scores.sort(descending=True).values[:40] - tree.log_partition()
    torch.testing.assert_close(log_probs, expected)
    torch.testing.assert_close(tree.log_prob(values), expected)


def test_what_is_no_tree_has_probability_zero() -> None:
    tree = SpanTree(torch.zeros(4, 4), mask=torch.tensor([True, True, False, True]))
    good = tree.argmax()
    assert tree.log_prob(good) > -torch.inf
    missing, crossing, padded = good.clone(), good.clone(), good.clone()
    missing[0, 3] = False
    crossing[0, 1] = crossing[1, 3] = True
    padded[0, 1] = padded[1, 3] = False
    padded[0, 2] = True
    for value in (missing, crossing, padded, torch.zeros_like(good)):
        assert tree.log_prob(value) == -torch.inf


def test_crossing_spans_of_the_right_number_are_no_tree() -> None:
    value = torch.eye(4, dtype=torch.bool)
    value[0, 3] = value[0, 1] = value[1, 2] = True
    assert SpanTree(torch.zeros(4, 4)).score(value) == -torch.inf


def test_mapped_marginals_are_the_same() -> None:
    torch.manual_seed(0)
    spans, mask = (
        torch.randn(3, 4, 4),
        torch.tensor([[True] * 4, [True, False, True, True], [False] * 4]),
    )

    def marginals(one: Tensor, its_mask: Tensor) -> Tensor:
        return SpanTree(one, its_mask).marginals()

    expected = marginals(spans, mask)
    torch.testing.assert_close(torch.func.vmap(marginals)(spans, mask), expected)

    def loss(one: Tensor, its_mask: Tensor) -> Tensor:
        return (marginals(one, its_mask) ** 2).sum()

    leaf = spans.clone().requires_grad_()
    (grad,) = torch.autograd.grad(loss(leaf, mask), leaf)
    mapped = torch.func.vmap(torch.func.grad(loss))(spans, mask)
    torch.testing.assert_close(mapped, grad)


def test_spans_must_be_square() -> None:
    with pytest.raises(ShapeError, match="SpanTree: spans"):
        SpanTree(torch.zeros(3, 4))
    with pytest.raises(ShapeError, match="SpanTree: spans"):
        SpanTree(torch.zeros(2, 3, 3), labeled=True)

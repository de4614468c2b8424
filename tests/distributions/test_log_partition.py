"""Distributions defined by their log-partition, against the laws, enumeration and other structures."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from typing_extensions import override

from foveal.distributions import (
    PCFG,
    LogPartitionDistribution,
    ProjectiveTree,
    SiblingTree,
    SpanTree,
)
from foveal.errors import ShapeError, ValueRangeError
from foveal.testing import check_distribution
from tests.structures.enumeration import dependency_trees, real

pytestmark = pytest.mark.slow


def scores_of(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Bag(LogPartitionDistribution):
    """Any subset: structures can contain one another, and one of them is empty."""

    scores: Tensor
    mask: Tensor | None = None
    axes: ClassVar[dict[str, str]] = {"scores": "n", "mask": "n"}

    @override
    def log_partition_of(self, logsumexp: Any, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return logsumexp(torch.stack([scores, torch.zeros_like(scores)], -1), -1).sum(-1)


def subsets(scores: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    for chosen in product([False, True], repeat=len(scores)):
        value = torch.tensor(chosen)
        if mask is None or not (value & ~mask).any():
            yield value, scores[value].sum()


Node = tuple[int, int, int, Any, Any]  # first word, last word, symbol, and two nodes or None


def trees(words: list[int], num_symbols: int) -> Iterator[Node]:
    """Enumerate every tree of a grammar with all rules."""
    for symbol in range(num_symbols):
        if len(words) == 1:
            yield words[0], words[0], symbol, None, None
        for cut in range(1, len(words)):
            left, right = trees(words[:cut], num_symbols), trees(words[cut:], num_symbols)
            for pair in product(list(left), list(right)):
                yield words[0], words[-1], symbol, *pair


def parses(
    spans: Tensor, rules: Tensor, root: Tensor, mask: Tensor | None
) -> Iterator[tuple[Tensor, Tensor]]:
    def score_of(node: Node, value: Tensor) -> Tensor:
        i, j, symbol, left, right = node
        value[i, j, symbol] = True
        if left is None:
            return spans[i, j, symbol]
        score = spans[i, j, symbol] + rules[symbol, left[2], right[2]]
        return score + score_of(left, value) + score_of(right, value)

    words = [i for i in range(len(spans)) if mask is None or mask[i]]
    if not words:
        yield torch.zeros(spans.shape, dtype=torch.bool), spans.new_zeros(())
    for tree in trees(words, spans.shape[-1]) if words else ():
        value = torch.zeros(spans.shape, dtype=torch.bool)
        yield value, root[tree[2]] + score_of(tree, value)


def next_sibling(word: int, heads: dict[int, int]) -> int:
    """Return the next dependent of the same head in the direction of the head, or the head itself."""
    head = heads[word]
    way = range(word + 1, head) if word < head else range(word - 1, head, -1)
    return next((other for other in way if heads.get(other) == head), head)


def sibling_trees(
    arcs: Tensor, siblings: Tensor, mask: Tensor | None, *, single_root: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    there = torch.ones(len(arcs) - 1, dtype=torch.bool) if mask is None else mask
    for tree in dependency_trees(there, single_root=single_root, projective=True):
        heads = {word + 1: int(tree.value[word]) for word in real(there)}
        score = arcs.new_zeros(())
        for word, head in heads.items():
            score = score + arcs[head, word] + siblings[head, next_sibling(word, heads), word]
        yield tree.value, score


def a_grammar(batch: int, num_words: int, num_symbols: int) -> list[Tensor]:
    shapes = ((num_words, num_words, num_symbols), (num_symbols,) * 3, (num_symbols,))
    return [scores_of(batch, *shape, seed=seed) for seed, shape in enumerate(shapes)]


def sibling_scores(batch: int, num_words: int) -> list[Tensor]:
    size = num_words + 1
    return [scores_of(batch, size, size), scores_of(batch, size, size, size, seed=1)]


def test_structures_within_structures_obey_the_laws() -> None:
    mask = torch.tensor([[True, True, True], [True, False, True]])
    check_distribution(Bag, [scores_of(2, 3)], mask, structures=subsets)


@pytest.mark.parametrize("mask", [None, torch.tensor([[True, False, True], [False, False, False]])])
def test_a_grammar_obeys_the_laws(mask: Tensor | None) -> None:
    parts = a_grammar(1 if mask is None else 2, 3, 2)
    check_distribution(PCFG, parts, mask, structures=parses)


@pytest.mark.parametrize(
    ("num_words", "single_root", "mask"),
    [(3, True, None), (2, False, torch.tensor([[True, True], [False, True]]))],
)
def test_sibling_trees_obey_the_laws(
    num_words: int, single_root: bool, mask: Tensor | None
) -> None:
    check_distribution(
        partial(SiblingTree, single_root=single_root),
        sibling_scores(1 if mask is None else 2, num_words),
        mask,
        structures=partial(sibling_trees, single_root=single_root),
    )


def check_enumeration(
    distribution: LogPartitionDistribution, every: Iterator[tuple[Tensor, Tensor]]
) -> None:
    """Check one item that has too many structures for the law suite."""
    values, scores = (torch.stack(part) for part in zip(*every, strict=True))
    log_probs = scores.log_softmax(0)
    close = partial(assert_close, rtol=1e-9, atol=1e-9)
    close(distribution.log_partition(), scores.logsumexp(0))
    close(distribution.log_prob(values), log_probs)
    parts = distribution.indicators(values)
    close(distribution.marginals(), torch.tensordot(log_probs.exp(), parts, 1))
    close(distribution.entropy(), -(log_probs.exp() * log_probs).sum())
    assert torch.equal(distribution.argmax(), values[scores.argmax()])
    best = scores.topk(5)
    assert torch.equal(distribution.topk(5).values, values[best.indices])

    num_samples = 3000
    draws = distribution.sample((num_samples,), generator=torch.Generator().manual_seed(0))
    found, counts = torch.unique(draws, dim=0, return_counts=True)
    frequencies = torch.zeros_like(log_probs)
    for value, number in zip(found, counts, strict=True):
        (place,) = (values == value).flatten(1).all(1).nonzero().flatten().tolist()
        frequencies[place] = number / num_samples
    probs = log_probs.exp()
    spread = (probs * (1 - probs) / num_samples).sqrt()
    assert ((frequencies - probs).abs() < 5 * spread + 3 / num_samples).all()


def test_a_larger_grammar_is_enumeration() -> None:
    spans, rules, root = (part[0] for part in a_grammar(1, 5, 2))
    mask = torch.tensor([True, True, False, True, True])
    check_enumeration(PCFG(spans, rules, root, mask), parses(spans, rules, root, mask))


@pytest.mark.parametrize("single_root", [True, False])
def test_larger_sibling_trees_are_enumeration(single_root: bool) -> None:
    arcs, siblings = (part[0] for part in sibling_scores(1, 6))
    mask = torch.tensor([False, True, True, False, True, True])
    tree = SiblingTree(arcs, siblings, single_root=single_root, mask=mask)
    check_enumeration(tree, sibling_trees(arcs, siblings, mask, single_root=single_root))


@pytest.mark.parametrize("single_root", [True, False])
def test_without_scores_of_siblings_it_is_a_projective_tree(single_root: bool) -> None:
    arcs = scores_of(2, 10, 10)
    mask = torch.tensor([[True] * 9, [True, False] * 4 + [True]])
    sibling = SiblingTree(arcs, torch.zeros(10, 10, 10), single_root=single_root, mask=mask)
    plain = ProjectiveTree(arcs, single_root=single_root, mask=mask)
    assert_close(sibling.log_partition(), plain.log_partition())
    assert_close(sibling.marginals(), plain.marginals())
    assert_close(sibling.entropy(), plain.entropy())
    assert torch.equal(sibling.argmax(), plain.argmax())
    assert torch.equal(sibling.topk(3).values, plain.topk(3).values)
    assert_close(sibling.log_prob(plain.argmax()), plain.log_prob(plain.argmax()))


def test_without_scores_of_rules_a_grammar_is_a_span_tree() -> None:
    spans = scores_of(2, 8, 8, 3)
    mask = torch.tensor([[True] * 8, [False, True] * 4])
    grammar = PCFG(spans, torch.zeros(3, 3, 3), torch.zeros(3), mask)
    plain = SpanTree(spans, mask, labeled=True)
    assert_close(grammar.log_partition(), plain.log_partition())
    assert_close(grammar.marginals(), plain.marginals())
    assert_close(grammar.entropy(), plain.entropy())
    assert torch.equal(grammar.argmax(), plain.argmax())
    assert torch.equal(grammar.topk(3).values, plain.topk(3).values)


def test_a_grammar_with_probabilities_gives_the_probability_of_a_sentence() -> None:
    """S -> S S (0.4), S -> a (0.6): 2 trees over three words."""
    spans = torch.diag_embed(torch.full((1, 3), 0.6).log(), dim1=-3, dim2=-2)
    trees = PCFG(spans, torch.full((1, 1, 1), 0.4).log(), torch.zeros(1))
    assert_close(trees.log_partition().exp(), torch.tensor(2 * 0.4**2 * 0.6**3))


@dataclass(frozen=True, eq=False)
class Careless(LogPartitionDistribution):
    """A choice that ignores the `logsumexp` argument and sums with another function."""

    scores: Tensor
    axes: ClassVar[dict[str, str]] = {"scores": "n"}

    @override
    def log_partition_of(self, logsumexp: Any, scores: Tensor) -> Tensor:
        return scores.logsumexp(-1)


def test_sums_with_another_function_are_found_out() -> None:
    choice = Careless(torch.tensor([0.0, 1.0]))
    assert_close(choice.marginals(), torch.tensor([0.0, 1.0]).softmax(-1))
    for verb in (choice.argmax, choice.sample):
        with pytest.raises(ValueRangeError, match=r"a part 0\.\d+ times.*logsumexp"):
            verb()


def test_values_that_are_no_structures_are_refused() -> None:
    tree = SiblingTree(torch.zeros(4, 4), torch.zeros(4, 4, 4))
    with pytest.raises(ValueRangeError, match=r"SiblingTree\.score.*1 of 2 values.*index \[1\]"):
        tree.log_prob(torch.tensor([[2, 0, 2], [2, 1, 0]]))  # the second has a cycle
    with pytest.raises(ValueRangeError, match=r"in 0\.\.3, got 4"):
        tree.log_prob(torch.tensor([4, 0, 2]))


@dataclass(frozen=True, eq=False)
class Unsummed(Careless):
    @override
    def log_partition_of(self, logsumexp: Any, scores: Tensor) -> Tensor:
        return scores


@dataclass(frozen=True, eq=False)
class Unnamed(Careless):
    axes: ClassVar[dict[str, str]] = {}


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ShapeError, match=r"expected a result of shape \(2,\).*got \(2, 3\)"):
        Unsummed(torch.zeros(2, 3)).log_partition()
    with pytest.raises(ShapeError, match=r"axes of every tensor, got none for scores"):
        Unnamed(torch.zeros(3))
    with pytest.raises(ShapeError, match=r"mask must end in sizes \(3,\).*got \(4,\)"):
        Bag(torch.zeros(3), torch.ones(4, dtype=torch.bool))

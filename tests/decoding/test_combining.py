"""Ensembles, and minimum Bayes risk over an n-best list."""

import math
from typing import Any

import pytest
import torch

from foveal.decoding import (
    Ensemble,
    Hypotheses,
    beam_search,
    edit_similarity,
    greedy,
    minimum_bayes_risk,
    ngram_similarity,
    sample,
)
from foveal.errors import ShapeError, ValueRangeError
from foveal.networks import SearchStep
from tests.decoding.toys import BEGIN, END, ToyState, ToyStepper

HOW: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 9, "with_weights": True}


@pytest.mark.parametrize("combine", ["mixture", "product"])
def test_an_ensemble_of_one_is_its_member(combine: Any) -> None:
    stepper = ToyStepper(5, seed=1)
    one = Ensemble([stepper], combine=combine)
    expected = beam_search(stepper, stepper.start(1, 2, 3), nbest=3, **HOW)
    found = beam_search(one, (stepper.start(1, 2, 3),), nbest=3, **HOW)
    for part, other in zip(found, expected, strict=True):
        assert part is not None
        assert other is not None
        assert torch.equal(part, other)


@pytest.mark.parametrize("combine", ["mixture", "product"])
def test_members_of_one_kind_are_one_of_them(combine: Any) -> None:
    """The ensemble has the same model three times, in a search that reorders and drops items."""
    stepper = ToyStepper(5, seed=1, sharpness=2.0)
    three = Ensemble([stepper] * 3, shares=[1.0, 2.0, 5.0], combine=combine)
    offsets = range(20)
    expected = beam_search(stepper, stepper.start(*offsets), nbest=3, **HOW)
    found = beam_search(three, (stepper.start(*offsets),) * 3, nbest=3, **HOW)
    for part, other in zip(found, expected, strict=True):
        assert part is not None
        assert other is not None
        torch.testing.assert_close(part, other)


def test_mixtures_and_products_by_hand() -> None:
    one, other = ToyStepper(3, seed=1), ToyStepper(3, seed=2)
    states, tokens = (one.start(4), other.start(4)), torch.tensor([[BEGIN]])
    p, q = (
        stepper.step(state, tokens).log_probs.exp()
        for stepper, state in zip((one, other), states, strict=True)
    )
    mixed = Ensemble([one, other], shares=[3.0, 1.0]).step(states, tokens)
    torch.testing.assert_close(mixed.log_probs.exp(), 0.75 * p + 0.25 * q)
    product = Ensemble([one, other], shares=[3.0, 1.0], combine="product").step(states, tokens)
    expected = p**0.75 * q**0.25
    torch.testing.assert_close(product.log_probs.exp(), expected / expected.sum())
    reads = [
        stepper.step(s, tokens).weights for stepper, s in zip((one, other), states, strict=True)
    ]
    assert reads[0] is not None
    assert reads[1] is not None
    assert mixed.weights is not None
    torch.testing.assert_close(mixed.weights, (reads[0] + reads[1]) / 2)


def test_members_that_read_other_places_have_no_common_weights() -> None:
    steppers = [ToyStepper(4, num_places=3), ToyStepper(4, num_places=5)]
    state = tuple(stepper.start(1) for stepper in steppers)
    assert greedy(Ensemble(steppers), state, **HOW).weights is None


def test_a_mixture_allows_what_one_member_allows_and_a_product_what_all_do() -> None:
    class Without(ToyStepper):
        def __init__(self, token: int) -> None:
            super().__init__(4)
            self.token = token

        def step(self, state: ToyState, tokens: torch.Tensor) -> SearchStep:
            stepped = super().step(state, tokens)
            log_probs = stepped.log_probs.clone()
            log_probs[..., self.token] = -torch.inf
            return stepped._replace(log_probs=log_probs.log_softmax(-1))

    steppers = [Without(2), Without(3)]
    states, tokens = tuple(each.start(1) for each in steppers), torch.tensor([[BEGIN]])
    mixed = Ensemble(steppers).step(states, tokens).log_probs
    assert (mixed > -torch.inf).all()
    product = Ensemble(steppers, combine="product").step(states, tokens).log_probs
    assert (product[0, 0] > -torch.inf).tolist() == [True, True, False, False]


def hypotheses_of(outputs: list[list[int]], probabilities: list[float]) -> Hypotheses:
    size = max(map(len, outputs)) + 1
    tokens = torch.tensor([[output + [END] * (size - len(output)) for output in outputs]])
    log_probs = torch.zeros(tokens.shape)
    log_probs[0, :, 0] = torch.tensor(probabilities).log()
    lengths = torch.tensor([[len(output) + 1 for output in outputs]])
    return Hypotheses(tokens, lengths, log_probs.sum(-1), log_probs, log_probs[..., None])


def test_minimum_bayes_risk_by_hand() -> None:
    """The most probable hypothesis is unlike the others, which are similar to each other."""
    outputs = [[7, 8, 9], [2, 3, 4], [2, 3, 5], [2, 3, 6]]
    ranked = minimum_bayes_risk(hypotheses_of(outputs, [0.34, 0.24, 0.22, 0.2]), end=END)
    expected = 0.24 + (0.22 + 0.2) * 2 / 3
    assert ranked.tokens[0, 0].tolist() == [2, 3, 4, END]
    assert ranked.scores[0].tolist() == pytest.approx(
        [expected, 0.22 + 0.44 * 2 / 3, 0.2 + 0.46 * 2 / 3, 0.34]
    )
    assert ranked.log_probs[0, 0, 0].item() == pytest.approx(math.log(0.24))
    assert ranked.weights is not None
    assert torch.equal(ranked.weights[..., 0], ranked.log_probs)


def test_samples_count_as_often_as_they_are_there() -> None:
    outputs = [[2, 3], [4, 4], [4, 4], [2, 5]]
    ranked = minimum_bayes_risk(
        hypotheses_of(outputs, [0.9, 0.01, 0.01, 0.01]), end=END, weigh_by="count"
    )
    assert ranked.tokens[0, 0].tolist() == [4, 4, END]
    assert ranked.scores[0].tolist() == pytest.approx([0.5, 0.5, 0.375, 0.375])


def test_outputs_that_are_not_there_have_no_say() -> None:
    hypotheses = hypotheses_of([[2, 3], [4, 4]], [0.5, 0.5])
    lengths = torch.tensor([[3, 0]])
    ranked = minimum_bayes_risk(hypotheses._replace(lengths=lengths), end=END)
    assert ranked.scores[0].tolist() == [1.0, -math.inf]


def test_any_similarity_will_do() -> None:
    hypotheses = hypotheses_of([[2], [2, 2], [2, 2, 2]], [0.4, 0.3, 0.3])

    def same_length(one: Any, other: Any) -> float:
        return -abs(len(one) - len(other))

    assert minimum_bayes_risk(hypotheses, end=END, similarity=same_length).tokens[
        0, 0
    ].tolist() == [2, 2, END, END]


def test_similarities() -> None:
    assert edit_similarity([2, 3, 4], [2, 4]) == pytest.approx(2 / 3)
    assert edit_similarity([], []) == ngram_similarity([], []) == 1.0
    moved, replaced = [5, 6, 2, 3, 4], [2, 3, 4, 7, 8]
    whole = [2, 3, 4, 5, 6]
    assert ngram_similarity(whole, whole) == pytest.approx(1.0)
    # Moving a phrase keeps its n-grams.
    assert ngram_similarity(moved, whole) > ngram_similarity(replaced, whole)
    assert edit_similarity(moved, whole) < edit_similarity(replaced, whole)
    assert ngram_similarity([2], [3]) == pytest.approx(0.0)


def test_risk_over_samples_of_a_model() -> None:
    stepper = ToyStepper(5, seed=1, sharpness=2.0)
    drawn = sample(
        stepper,
        stepper.start(1, 2),
        num_samples=20,
        generator=torch.Generator().manual_seed(0),
        **HOW,
    )
    ranked = minimum_bayes_risk(drawn, end=END, weigh_by="count", similarity=ngram_similarity)
    assert (ranked.scores.diff() <= 0).all()
    for before, after in zip(drawn.token_lists(END), ranked.token_lists(END), strict=True):
        assert sorted(before) == sorted(after)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ShapeError, match=r"all of one vocabulary, got 2 with num_tokens \[4, 5\]"):
        Ensemble([ToyStepper(4), ToyStepper(5)])
    with pytest.raises(ValueRangeError, match="positive weight for each of 1"):
        Ensemble([ToyStepper(4)], shares=[0.0])
    with pytest.raises(ShapeError, match="at least one stepper"):
        Ensemble([])

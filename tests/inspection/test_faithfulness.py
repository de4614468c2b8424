"""Erasing positions, against scoring by hand, for faithful and for misleading attention."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from foveal.bundles import load_bundle
from foveal.data import BEGIN, END, Example
from foveal.data.vocabularies._vocabulary import UNKNOWN
from foveal.errors import ValueRangeError
from foveal.inspection import faithfulness
from foveal.inspection.explaining._erasure import erased
from foveal.inspection.explaining._faithfulness import step_sums
from foveal.tasks import Classification, Transduction
from tests.tasks.stored import BUNDLES
from tests.tasks.tiny import DECODER, opinions, transduction, upper_cased


@pytest.fixture(scope="module")
def task() -> Transduction:
    loaded = load_bundle(BUNDLES / "0.1.0" / "transduction")
    assert isinstance(loaded, Transduction)
    return loaded


def test_erasing_is_scoring_with_an_unknown_symbol(task: Transduction) -> None:
    change = erased(task, Example("abc"), ["A", "B", ""])
    assert change.shape == (3, 3)
    target, source = task.vocabularies.target, task.vocabularies.source.encode("abc")
    assert target is not None
    written = [*target.encode("AB"), END]
    tokens, targets = torch.tensor([[BEGIN, *written[:-1]]]), torch.tensor([written])
    with task.answering():
        whole = task.model.score(torch.tensor([source]), None, tokens, targets).log_prob
        for place in range(3):
            without = [UNKNOWN if n == place else token for n, token in enumerate(source)]
            found = task.model.score(torch.tensor([without]), None, tokens, targets).log_prob
            np.testing.assert_allclose(change[place], (found - whole)[0], atol=1e-5)


def test_a_place_that_is_unknown_already_cannot_be_erased(task: Transduction) -> None:
    change = erased(task, Example("aXc"), ["A"])
    assert change[1] == pytest.approx([0.0], abs=1e-6)
    assert change[0, 0] < -0.1


def test_attention_of_a_trained_model_points_at_what_it_needs(task: Transduction) -> None:
    found = faithfulness(task, [e for e in upper_cased(60) if len(e.text) > 1])
    assert found.num_steps > found.num_examples > 20
    assert found.difference.high < 0
    assert found.attended.value < found.random.value
    assert found.share.low > 0.6
    difference = found.attended.value - found.random.value
    assert found.difference.value == pytest.approx(difference, abs=1e-9)
    assert "matters more than a random one" in found.text()


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 6))
def test_sums_by_brute_force(seed: int, num_steps: int, num_places: int) -> None:
    generator = np.random.default_rng(seed)
    weights, change = (
        generator.random((num_steps, num_places)),
        np.round(generator.normal(size=(num_places, num_steps)), 1),
    )  # rounded, to get equal values
    attended = random = share = whole_attended = whole_random = 0.0
    for step, row in enumerate(weights):
        most = int(row.argmax())
        others = [place for place in range(num_places) if place != most]
        attended += change[most, step]
        random += np.mean([change[place, step] for place in others])
        falls = [change[most, step] - change[place, step] for place in others]
        share += np.mean([1.0 if fall < 0 else 0.5 if fall == 0 else 0.0 for fall in falls])
        whole_attended += change[most].sum()
        whole_random += np.mean([change[place].sum() for place in others])
    expected = [attended, random, share, whole_attended, whole_random, num_steps]
    np.testing.assert_allclose(step_sums(weights, change), expected, atol=1e-9)


def test_attention_that_points_away_from_what_matters_is_caught() -> None:
    change = np.array([[-5.0, -4.0], [-0.1, -0.2], [-1.0, -2.0]])
    faithful, lying = np.array([[0.8, 0.1, 0.1]] * 2), np.array([[0.1, 0.8, 0.1]] * 2)
    assert step_sums(faithful, change)[2] == 2  # all other positions matter less, at both steps
    assert step_sums(lying, change)[2] == 0


def test_fresh_weights_show_no_difference_beyond_chance() -> None:
    torch.manual_seed(0)
    found = faithfulness(transduction(), upper_cased(60))
    assert abs(found.difference.value) < 0.05
    assert "50% is chance" in found.text()


def test_the_same_seed_gives_the_same_intervals(task: Transduction) -> None:
    examples = upper_cased(20)
    assert faithfulness(task, examples, seed=3) == faithfulness(task, examples, seed=3)


def test_labels_too() -> None:
    task = load_bundle(BUNDLES / "0.1.0" / "classification")
    assert isinstance(task, Classification)
    change = erased(task, Example("the good old ship"), ["yes"])
    assert change.shape == (4, 1)
    assert change[:, 0].argmin() == 1  # "good" decides the label
    found = faithfulness(task, opinions(60))
    assert found.num_steps == found.num_examples


def test_nothing_to_erase(task: Transduction) -> None:
    with pytest.raises(ValueRangeError, match="got none among 2"):
        faithfulness(task, [Example("a"), Example("")])
    silent = transduction(decoder=replace(DECODER, attention=None))
    with pytest.raises(ValueRangeError, match="a model with attention"):
        faithfulness(silent, [Example("abc")])
    with pytest.raises(ValueRangeError, match="got tagging"):
        erased(load_bundle(BUNDLES / "0.1.0" / "tagging"), Example("a cat"), ["DET"])

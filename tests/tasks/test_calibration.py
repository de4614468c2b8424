"""Calibration finds the temperature that generated the data and leaves a calibrated model unchanged. The
calibration error is right on cases worked out by hand and unbiased on small samples.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from foveal.errors import ShapeError
from foveal.metrics import reliability, risk_coverage
from foveal.metrics._calibration import Calibration, Scaling, fit_calibration
from foveal.metrics._reliability import mean_square

pytestmark = pytest.mark.slow


def drawn(generator: np.random.Generator, probabilities: np.ndarray) -> np.ndarray:
    """Draw an index for each row from its probabilities; -1 for the remaining probability."""
    bounds = np.cumsum(probabilities, 1)
    index = (generator.random((len(bounds), 1)) > bounds).sum(1)
    return np.where(index == probabilities.shape[1], -1, index)


def nbest(generator: np.random.Generator, size: int, *, complete: bool = False) -> np.ndarray:
    """Draw distributions over 12 outputs, or the best 4 of each."""
    logits = generator.normal(size=(size, 12)) * 2
    log_probs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    return log_probs if complete else np.sort(log_probs, 1)[:, :-5:-1]


@pytest.mark.parametrize("made", [Scaling(temperature=0.6, others=-1.5), Scaling()])
def test_it_finds_what_made_the_data(made: Scaling) -> None:
    generator = np.random.default_rng(0)
    log_probs = nbest(generator, 20_000)
    right = drawn(generator, made.probabilities(log_probs)[:, :-1])
    found = fit_calibration(log_probs, right).scalings
    assert len(found) == 4
    assert found[-1].temperature == pytest.approx(made.temperature, rel=0.06)
    assert found[-1].others == pytest.approx(made.others, abs=0.1)


def test_of_a_whole_distribution_it_finds_the_temperature() -> None:
    generator = np.random.default_rng(0)
    made = Scaling(temperature=2.5, others=None)
    log_probs = nbest(generator, 20_000, complete=True)
    right = drawn(generator, made.probabilities(log_probs)[:, :-1])
    (found,) = fit_calibration(log_probs, right, complete=True).scalings
    assert found.others is None
    assert found.temperature == pytest.approx(2.5, rel=0.05)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_calibration_lowers_the_error_on_other_data(size: int) -> None:
    """Calibration is fitted on 400 examples of an underconfident model, as label smoothing
    produces, for lists of several lengths.
    """
    generator = np.random.default_rng(0)
    log_probs = nbest(generator, 3400) * 1.2 - 0.3
    right = drawn(generator, Scaling(temperature=0.8, others=-3.0).probabilities(log_probs)[:, :-1])
    found = fit_calibration(log_probs[:400], right[:400])
    before, after = (
        reliability(how.probabilities(log_probs[400:, :size])[:, 0], right[400:] == 0)
        for how in (Calibration(), found)
    )
    assert before.ece > 0.2
    assert after.ece < 0.05


@pytest.mark.parametrize("right", [0, -1])
def test_data_without_errors_or_without_anything_right_is_no_certainty(right: int) -> None:
    log_probs = nbest(np.random.default_rng(0), 50)
    found = fit_calibration(log_probs, np.full(50, right))
    means = [found.probabilities(log_probs[:, :n])[:, 0].mean() for n in (1, 4)]
    assert all(0.7 < mean < 0.9999 if right == 0 else 0.0001 < mean < 0.15 for mean in means)


# Temperature and b of each scaling; b is None if the list contains all candidates.
scalings = st.tuples(st.tuples(st.floats(0.05, 20), st.none())) | st.lists(
    st.tuples(st.floats(0.05, 20), st.floats(-10, 10)), min_size=1, max_size=5
)


@given(
    weights=arrays(np.float64, (3, 5), elements=st.floats(0, 1)),
    given=st.floats(0.01, 1),
    scalings=scalings,
)
@settings(deadline=None)
def test_probabilities_are_such(
    weights: np.ndarray, given: float, scalings: Sequence[tuple[float, float | None]]
) -> None:
    calibration = Calibration(tuple(Scaling(temperature=t, others=b) for t, b in scalings))
    weights[:, 0] += 0.1  # an n-best list is not empty
    with np.errstate(divide="ignore"):
        log_probs = -np.sort(-np.log(given * weights / weights.sum(1, keepdims=True)))
    got = calibration.probabilities(log_probs)
    assert ((got >= 0) & (got <= 1)).all()
    assert (got.sum(1) <= 1 + 1e-6).all()
    assert (got[np.isneginf(log_probs)] == 0).all()
    first = got[:, : len(calibration.scalings)]
    assert (np.diff(first) <= 1e-12).all()  # the order is unchanged


def test_a_longer_list_shares_what_is_left() -> None:
    calibration = Calibration((Scaling(temperature=1.0, others=float(np.log(3))),))
    got = calibration.probabilities(np.log([[0.5, 0.3, 0.1]]))
    assert got[0] == pytest.approx([0.25, 0.75 * 0.6, 0.75 * 0.2])


def test_a_confident_model_does_not_overflow() -> None:
    certain = np.array([[0.0, -np.inf], [1e-7, -50.0]])
    assert np.isfinite(Scaling(temperature=0.05, others=9.0).probabilities(certain)).all()


def test_data_goes_there_and_back() -> None:
    for calibration in (
        Calibration((Scaling(temperature=1.25, others=-0.5), Scaling())),
        Calibration((Scaling(others=None),)),
    ):
        assert Calibration.from_data(calibration.to_data()) == calibration


def test_the_error_by_hand() -> None:
    """The sweep stops at one bin if accuracy falls with confidence."""
    confidence = np.array([0.2, 0.4, 0.6, 0.8])
    assert reliability(confidence, np.array([True, True, False, False])).ece == pytest.approx(0.0)
    rising = reliability(confidence, np.array([False, False, True, True]))
    assert [b.num_examples for b in rising.bins] == [1, 1, 1, 1]
    assert rising.ece == pytest.approx((0.2 + 0.4 + 0.4 + 0.2) / 4)


def test_the_error_finds_what_is_there() -> None:
    generator = np.random.default_rng(0)
    truth = generator.random(20_000)
    right = generator.random(20_000) < truth
    assert reliability(truth, right).ece < 0.015
    assert reliability(truth**2, right).ece == pytest.approx(1 / 6, abs=0.015)  # E[p - p^2]


def test_on_few_examples_a_perfect_model_shows_what_chance_says() -> None:
    generator = np.random.default_rng(0)
    confidence = generator.beta(4, 1, size=100)
    seen = [
        reliability(confidence, generator.random(100) < confidence, seed=n).ece for n in range(10)
    ]
    chance = reliability(confidence, generator.random(100) < confidence).chance
    assert np.mean(seen) == pytest.approx(chance, rel=0.25)
    assert chance > 0.02


@pytest.mark.parametrize("miss", [0.0, 0.05, 0.1])
def test_the_debiased_square_is_right_on_average_on_few_examples(miss: float) -> None:
    """Every confidence is too high by `miss`, and each test has 100 examples."""
    generator = np.random.default_rng(1)
    squares = []
    for _ in range(120):
        confidence = 0.2 + 0.8 * generator.beta(3, 1, size=100)
        right = generator.random(100) < confidence - miss
        order = np.argsort(confidence)
        squares.append(mean_square(confidence[order], right[order]))
    assert np.mean(squares) == pytest.approx(miss**2, abs=0.0012)


def test_risk_and_coverage_by_hand() -> None:
    curve = risk_coverage(np.array([0.9, 0.1, 0.5, 0.5]), np.array([True, False, True, False]))
    assert curve.coverage == (0.25, 0.75, 1.0)
    assert curve.risk == pytest.approx((0, 1 / 3, 1 / 2))
    assert curve.area == pytest.approx(0.25 * 0 + 0.5 / 3 + 0.25 / 2)
    assert curve.coverage_at(0.4) == 0.75
    assert curve.coverage_at(0.0) == 0.25
    assert risk_coverage(np.array([0.5]), np.array([False])).coverage_at(0.1) == 0


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"0 confidences.*reference"):
        reliability(np.zeros(0), np.zeros(0, bool))

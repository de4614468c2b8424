"""Beam search against enumeration, and the laws of n-best lists."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st

from foveal.decoding import CoveragePenalty, Hypotheses, LengthPenalty, beam_search, greedy
from foveal.errors import ImpossibleError, ShapeError, ValueRangeError
from foveal.networks import SearchStep
from tests.decoding.toys import BEGIN, END, Output, ToyState, ToyStepper, every_output

pytestmark = pytest.mark.slow

WIDE = 200  # more than the number of prefixes of any length below


def outputs_of(hypotheses: Hypotheses, item: int) -> list[tuple[int, ...]]:
    rows = zip(hypotheses.tokens[item].tolist(), hypotheses.lengths[item].tolist(), strict=True)
    return [tuple(tokens[:length]) for tokens, length in rows]


def check_against(hypotheses: Hypotheses, item: int, expected: list[Output]) -> None:
    """Check tokens, log-probabilities and weights of the best outputs of one item, in this order."""
    found = outputs_of(hypotheses, item)[: len(expected)]
    assert found == [output.tokens for output in expected]
    for n, output in enumerate(expected):
        length = len(output.tokens)
        assert hypotheses.log_probs[item, n, :length].tolist() == list(output.log_probs)
        assert not hypotheses.log_probs[item, n, length:].any()
        assert (hypotheses.tokens[item, n, length:] == END).all()
        if hypotheses.weights is not None:
            assert torch.equal(hypotheses.weights[item, n, :length], torch.stack(output.weights))
            assert not hypotheses.weights[item, n, length:].any()


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    num_tokens=st.integers(2, 4),
    max_length=st.integers(1, 4),
    offsets=st.lists(st.integers(0, 100), min_size=1, max_size=4),
)
def test_a_beam_as_wide_as_the_space_is_exhaustive(
    seed: int, num_tokens: int, max_length: int, offsets: list[int]
) -> None:
    stepper = ToyStepper(num_tokens, seed=seed, sharpness=2.0)
    found = beam_search(
        stepper,
        stepper.start(*offsets),
        begin=BEGIN,
        end=END,
        max_length=max_length,
        beam_size=WIDE,
        nbest=WIDE,
        with_weights=True,
    )
    for item, offset in enumerate(offsets):
        every = every_output(stepper, offset, max_length)
        assert int((found.lengths[item] > 0).sum()) == len(every)
        check_against(found, item, every)
        assert (found.scores[item, len(every) :] == -torch.inf).all()


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.floats(0, 2),
    offset=st.sampled_from([0.0, 5.0]),
    beta=st.floats(0, 1),
    nbest=st.integers(1, 6),
    limits=st.lists(st.integers(1, 4), min_size=5, max_size=5),
)
def test_the_best_under_penalties_is_found(
    seed: int, alpha: float, offset: float, beta: float, nbest: int, limits: list[int]
) -> None:
    """The reference enumerates all outputs and computes the scores by hand. Each item has a
    different limit; an item that has reached its limit may stay in the batch for some steps.
    """
    stepper = ToyStepper(4, seed=seed, sharpness=1.5, dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, False, True]] * 2 + [[False, True, True]])
    places = (5, 17, 29, 41, 53)
    found = beam_search(
        stepper,
        stepper.start(*places),
        begin=BEGIN,
        end=END,
        max_length=torch.tensor(limits),
        beam_size=WIDE,
        nbest=nbest,
        length_penalty=LengthPenalty(alpha=alpha, offset=offset),
        coverage_penalty=CoveragePenalty(beta=beta, mask=mask),
    )

    def score(output: Output, item: int) -> float:
        divisor = ((offset + len(output.tokens)) / (offset + 1)) ** alpha
        read = torch.stack(output.weights).sum(0)[mask[item]]
        covered = sum(math.log(max(min(each, 1.0), 0.01)) for each in read.tolist())
        return output.log_prob / divisor + beta * covered

    for item, place in enumerate(places):
        every = every_output(stepper, place, limits[item])
        expected = sorted((score(output, item) for output in every), reverse=True)[:nbest]
        expected += [-math.inf] * (nbest - len(expected))
        torch.testing.assert_close(
            found.scores[item], torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-6
        )


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    sharpness=st.floats(0.5, 4),
    max_length=st.integers(1, 12),
    offsets=st.lists(st.integers(0, 100), min_size=1, max_size=6),
)
def test_greedy_is_a_beam_of_one(
    seed: int, sharpness: float, max_length: int, offsets: list[int]
) -> None:
    stepper = ToyStepper(5, seed=seed, sharpness=sharpness)
    how: dict[str, Any] = {
        "begin": BEGIN,
        "end": END,
        "max_length": max_length,
        "with_weights": True,
    }
    one = greedy(stepper, stepper.start(*offsets), **how)
    beam = beam_search(stepper, stepper.start(*offsets), beam_size=1, **how)
    for found, expected in zip(beam, one, strict=True):
        assert found is not None
        assert expected is not None
        torch.testing.assert_close(found, expected)
    for item, offset in enumerate(offsets):
        assert outputs_of(one, item)[0] == most_probable_path(stepper, offset, max_length)


def most_probable_path(stepper: ToyStepper, offset: int, max_length: int) -> tuple[int, ...]:
    key, token, path = 0, BEGIN, []
    while token != END and len(path) < max_length:
        key = (31 * key + token + offset + 1) % len(stepper.table)
        token = int(stepper.table[key].argmax()) if len(path) + 1 < max_length else END
        path.append(token)
    return tuple(path)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    beam_size=st.integers(1, 6),
    alpha=st.sampled_from([None, 0.0, 0.6, 1.0]),
    offsets=st.lists(st.integers(0, 100), min_size=2, max_size=8),
    data=st.data(),
)
def test_an_item_alone_is_an_item_in_a_batch(
    seed: int, beam_size: int, alpha: float | None, offsets: list[int], data: st.DataObject
) -> None:
    """An item's result is bit-identical with any other items in the batch."""
    stepper = ToyStepper(5, seed=seed, sharpness=2.0)
    nbest = data.draw(st.integers(1, beam_size))
    how: dict[str, Any] = {
        "begin": BEGIN,
        "end": END,
        "max_length": 9,
        "beam_size": beam_size,
        "nbest": nbest,
    }
    if alpha is not None:
        how["length_penalty"] = LengthPenalty(alpha=alpha)
    together = beam_search(stepper, stepper.start(*offsets), with_weights=True, **how)
    for item, offset in enumerate(offsets):
        alone = beam_search(stepper, stepper.start(offset), with_weights=True, **how)
        assert torch.equal(together.scores[item], alone.scores[0])
        assert torch.equal(together.lengths[item], alone.lengths[0])
        size = alone.tokens.shape[2]
        assert torch.equal(together.tokens[item, :, :size], alone.tokens[0])
        assert torch.equal(together.log_probs[item, :, :size], alone.log_probs[0])
        assert together.weights is not None
        assert alone.weights is not None
        assert torch.equal(together.weights[item, :, :size], alone.weights[0])


@pytest.mark.parametrize("seed", range(10))
def test_equal_scores_are_searched_alike_in_any_batch(seed: int) -> None:
    """The choice between two equal prefixes at the edge of a beam changes all later steps."""
    stepper = ToyStepper(100, seed=seed)
    stepper.table = stepper.table.round()
    how: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 4, "beam_size": 3, "nbest": 3}
    alone = beam_search(stepper, stepper.start(5), **how)
    for size in (7, 8, 20):
        together = beam_search(stepper, stepper.start(*[5] * size), **how)
        for item in range(size):
            assert outputs_of(together, item) == outputs_of(alone, 0)
            assert torch.equal(together.scores[item], alone.scores[0])


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), beam_size=st.integers(2, 8))
def test_an_nbest_list_is_sorted_distinct_and_adds_up(seed: int, beam_size: int) -> None:
    stepper = ToyStepper(4, seed=seed)
    found = beam_search(
        stepper,
        stepper.start(1, 2, 3),
        begin=BEGIN,
        end=END,
        max_length=7,
        beam_size=beam_size,
        nbest=beam_size,
    )
    assert (found.scores.diff() <= 0).all()
    torch.testing.assert_close(found.totals, found.scores)
    for item in range(3):
        outputs = outputs_of(found, item)
        assert len(set(outputs)) == len(outputs) == beam_size
        for tokens in outputs:
            assert END not in tokens[:-1]
            assert tokens[-1] == END


class Scripted(ToyStepper):
    """Tokens are a=2, b=3. "a" is the likely first token; after "b", another b is almost certain."""

    def __init__(self) -> None:
        super().__init__(4)

    def step(self, state: ToyState, tokens: torch.Tensor) -> SearchStep:
        probabilities = {
            BEGIN: [0.0, 0.0, 0.55, 0.45],
            2: [0.0, 0.5, 0.3, 0.2],
            3: [0.0, 0.05, 0.0, 0.95],
        }
        rows = [[probabilities.get(token, [0.25] * 4) for token in row] for row in tokens.tolist()]
        stepped = super().step(state, tokens)
        return stepped._replace(log_probs=torch.tensor(rows).log())


def test_a_live_hypothesis_may_overtake_late() -> None:
    """Under a length penalty, the first finished hypotheses are not the best: a search that stops
    as soon as `beam_size` hypotheses have ended returns "a" (0.275) and never sees "b b b ...".
    """
    stepper = Scripted()
    how: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 20, "beam_size": 2}
    by_probability = beam_search(stepper, stepper.start(0), **how)
    assert by_probability.tokens[0, 0].tolist() == [2, END]
    assert len(stepper.calls) < 20  # nothing can overtake 0.275 once b b ... has a lower score
    stepper.calls.clear()
    mean = LengthPenalty(alpha=1.0, offset=0.0)
    by_mean = beam_search(stepper, stepper.start(0), length_penalty=mean, **how)
    assert by_mean.tokens[0, 0].tolist() == [3] * 19 + [END]
    expected = (math.log(0.45) + 18 * math.log(0.95) + math.log(0.05)) / 20
    assert by_mean.scores.item() == pytest.approx(expected)
    assert len(stepper.calls) == 20


def test_penalties_by_hand() -> None:
    assert LengthPenalty(alpha=0.5).divisor(19) == pytest.approx(2.0)
    assert LengthPenalty(alpha=1.0, offset=0.0).divisor(7) == 7
    penalty = CoveragePenalty(beta=0.5, mask=torch.tensor([[True, True, True, False]]))
    covered = torch.tensor([[[0.5, 2.0, 0.0, 0.0]]])
    expected = 0.5 * (math.log(0.5) + 0.0 + math.log(0.01))
    assert penalty.score(covered).item() == pytest.approx(expected)
    everywhere = CoveragePenalty(beta=0.5).score(covered).item()
    assert everywhere == pytest.approx(expected + 0.5 * math.log(0.01))


def test_items_leave_the_batch() -> None:
    """Finished items are not stepped any more, and the first step has one hypothesis."""
    stepper = ToyStepper(6, seed=3, sharpness=2.5)
    offsets = range(64)
    found = beam_search(
        stepper, stepper.start(*offsets), begin=BEGIN, end=END, max_length=40, beam_size=5
    )
    assert stepper.calls[0] == (64, 1)
    assert stepper.calls[1] == (64, 5)
    items = [call[0] for call in stepper.calls]
    assert items == sorted(items, reverse=True)
    assert items[-1] < 32
    assert len(items) < 40
    assert found.tokens.shape[2] == int(found.lengths.max())


def test_greedy_search_stops_when_all_have_ended() -> None:
    stepper = ToyStepper(6, seed=3, sharpness=2.5)
    found = greedy(stepper, stepper.start(*range(7)), begin=BEGIN, end=END, max_length=40)
    lengths = found.lengths[:, 0]
    assert len(stepper.calls) == int(lengths.max()) < 40
    assert len(lengths.unique()) > 2
    # Items leave the batch when a quarter of them are finished; the last two stay together.
    for step, (items, _) in enumerate(stepper.calls):
        assert items == 2 or 3 * items <= 4 * int((lengths > step).sum())


def test_results_may_be_trained_on() -> None:
    """Searches run in inference mode, but autograd can save their results for the backward pass."""
    stepper = ToyStepper(4)
    found = greedy(stepper, stepper.start(1), begin=BEGIN, end=END, max_length=5)
    embedding = torch.nn.Embedding(4, 2)
    (embedding(found.tokens).sum() * found.log_probs.sum()).backward()
    assert embedding.weight.grad is not None


def test_a_model_without_attention_has_no_weights() -> None:
    class Blind(ToyStepper):
        def step(self, state: ToyState, tokens: torch.Tensor) -> SearchStep:
            return super().step(state, tokens)._replace(weights=None)

    stepper = Blind(4)
    how: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 5}
    for search in (greedy, beam_search):
        assert search(stepper, stepper.start(1), with_weights=True, **how).weights is None
    with pytest.raises(ShapeError, match="coverage penalty needs a model with attention"):
        beam_search(stepper, stepper.start(1), coverage_penalty=CoveragePenalty(), **how)


def test_a_model_that_allows_nothing_is_an_error() -> None:
    class Dead(ToyStepper):
        """The item with memory 7 has no continuation after its first token."""

        def step(self, state: ToyState, tokens: torch.Tensor) -> SearchStep:
            stepped = super().step(state, tokens)
            dead = (state.offsets == 7)[:, None, None] & (tokens != BEGIN)[..., None]
            return stepped._replace(log_probs=stepped.log_probs.masked_fill(dead, -torch.inf))

    stepper = Dead(4)
    stepper.table = torch.tensor([0.1, 0.05, 0.45, 0.4]).log().expand(101, 4)
    for search in (greedy, beam_search):
        with pytest.raises(ImpossibleError, match=r"got none for 1 of 3: items 1\. .*wider beam"):
            search(stepper, stepper.start(1, 7, 9), begin=2, end=END, max_length=5)


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_batch_of_nothing(search: Callable[..., Hypotheses]) -> None:
    stepper = ToyStepper(4)
    nothing = ToyState(torch.zeros(0, dtype=torch.long), torch.zeros(0, 1, dtype=torch.long))
    found = search(stepper, nothing, begin=BEGIN, end=END, max_length=5, with_weights=True)
    assert found.tokens.shape[:2] == (0, 1)
    assert found.scores.shape == (0, 1)


def test_errors_say_what_to_do() -> None:
    stepper = ToyStepper(4)
    state = stepper.start(1, 2)
    how: dict[str, Any] = {"begin": BEGIN, "end": END}
    with pytest.raises(ValueRangeError, match=r"nbest=6 and beam_size=5.*Pass beam_size=6"):
        beam_search(stepper, state, max_length=5, nbest=6, **how)
    with pytest.raises(ValueRangeError, match="max_length must be at least 1 and at least min_len"):
        beam_search(stepper, state, max_length=3, min_length=4, **how)
    with pytest.raises(ShapeError, match=r"shape \(2,\), one for each item, got \(3,\)"):
        greedy(stepper, state, max_length=torch.tensor([1, 2, 3]), **how)
    with pytest.raises(ValueRangeError, match=r"end must be in 0\.\.3, got 4"):
        greedy(stepper, state, begin=BEGIN, end=4, max_length=3)

"""Samples with and without replacement, against the probabilities of every output."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.decoding import Hypotheses, greedy, sample, stochastic_beam_search
from foveal.decoding._noise import Generators, Noise
from foveal.decoding._sample import _Draw
from foveal.errors import ShapeError, ValueRangeError
from tests.decoding.toys import BEGIN, END, ToyStepper, every_output

HOW: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": 3}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tokens_of(hypotheses: Hypotheses, item: int) -> list[tuple[int, ...]]:
    rows = zip(hypotheses.tokens[item].tolist(), hypotheses.lengths[item].tolist(), strict=True)
    return [tuple(tokens[:length]) for tokens, length in rows if length]


def excess(counts: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> float:
    """Return how many standard deviations chi-square is above its mean; rare outputs are pooled."""
    total = sum(counts.values())
    cells = {key: p for key, p in expected.items() if total * p >= 10}
    rest = 1 - sum(cells.values())
    statistic = sum((counts[key] - total * p) ** 2 / (total * p) for key, p in cells.items())
    rare = total - sum(counts[key] for key in cells)
    if total * rest >= 10:
        statistic += (rare - total * rest) ** 2 / (total * rest)
    freedom = len(cells) - (0 if total * rest >= 10 else 1)
    assert freedom >= 3, "a test of nothing"
    return (statistic - freedom) / math.sqrt(2 * freedom)


def probabilities(stepper: ToyStepper, offset: int) -> dict[tuple[int, ...], float]:
    every = every_output(stepper, offset, HOW["max_length"], complete=False)
    return {output.tokens: math.exp(output.log_prob) for output in every}


def test_frequencies_are_probabilities() -> None:
    stepper = ToyStepper(4, seed=1)
    drawn = sample(stepper, stepper.start(5, 17), num_samples=20_000, generator=seeded(0), **HOW)
    for item, offset in enumerate((5, 17)):
        expected = probabilities(stepper, offset)
        counts = Counter(tokens_of(drawn, item))
        assert set(counts) <= set(expected)
        assert abs(excess(counts, expected)) < 4
        assert excess(counts, probabilities(stepper, offset + 1)) > 50  # the test can fail
    torch.testing.assert_close(drawn.scores, drawn.log_probs.sum(-1))


CHANGES: list[tuple[dict[str, Any], Callable[[Tensor], Tensor]]] = [
    ({"temperature": 0.5}, lambda p: p.square()),
    ({"temperature": 2.0}, lambda p: p.sqrt()),
    ({"top_k": 2}, lambda p: p * (p >= p.topk(2).values[-1])),
    (
        {"top_p": 0.7},
        lambda p: p * (p.sort(descending=True).values.cumsum(0)[(p > p[:, None]).sum(1)] - p < 0.7),
    ),
    ({"top_k": 99}, lambda p: p),
    (
        {"temperature": 2.0, "top_k": 2},
        lambda p: p.sqrt() * (p >= p.topk(2).values[-1]),
    ),
]


@pytest.mark.parametrize(("settings", "change"), CHANGES, ids=[str(c[0]) for c in CHANGES])
def test_what_is_drawn_from(settings: dict[str, Any], change: Callable[[Tensor], Tensor]) -> None:
    """The reference is a model whose probabilities were changed by hand."""
    stepper, changed = ToyStepper(4, seed=2), ToyStepper(4, seed=2)
    rows = [change(row) for row in stepper.table.double().exp()]
    changed.table = torch.stack([row / row.sum() for row in rows]).log()
    drawn = sample(
        stepper, stepper.start(5), num_samples=20_000, generator=seeded(3), **settings, **HOW
    )
    counts, expected = Counter(tokens_of(drawn, 0)), probabilities(changed, 5)
    assert all(expected[tokens] > 0 for tokens in counts)
    possible = {tokens: p for tokens, p in expected.items() if p > 0}
    assert abs(excess(counts, possible)) < 4


def test_one_token_is_greedy() -> None:
    stepper = ToyStepper(4, seed=4)
    state = stepper.start(*range(9))
    # Sampling truncates long outputs; an output that ends before the limit is the same.
    expected = greedy(stepper, state, begin=BEGIN, end=END, max_length=40)
    assert int(expected.lengths.max()) < 40
    settings: list[dict[str, Any]] = [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-3}]
    for how in settings:
        drawn = sample(
            stepper, state, generator=seeded(0), begin=BEGIN, end=END, max_length=40, **how
        )
        assert torch.equal(drawn.tokens, expected.tokens)
        assert torch.equal(drawn.log_probs, expected.log_probs)


def test_a_token_without_probability_is_never_drawn() -> None:
    """This holds at both ends of the random numbers, and between possible tokens."""
    allowed = torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0]).log().expand(1, 3, 5)
    draws = torch.tensor([[[0.0, 0.5, 1 - 2**-53]]], dtype=torch.float64)
    settings: list[dict[str, Any]] = [{}, {"top_k": 4}, {"top_p": 0.999}]
    for how in settings:
        _, tokens = _Draw(draws, **how).choose(0, allowed)
        assert set(tokens[0].tolist()) == {1, 3}


def test_items_leave_when_they_are_cut_off() -> None:
    stepper = ToyStepper(4)
    stepper.table = torch.tensor([0.5, 0.0, 0.25, 0.25]).log().expand(101, 4)
    limits = torch.tensor([2, 2, 2, 7])
    drawn = sample(stepper, stepper.start(1, 2, 3, 4), begin=BEGIN, end=END, max_length=limits)
    assert drawn.lengths[:, 0].tolist() == limits.tolist()
    assert [call[0] for call in stepper.calls] == [4, 4, 2, 2, 2, 2, 2]  # two stay together
    assert not drawn.log_probs[:3, :, 2:].any()


@pytest.mark.parametrize("search", [sample, stochastic_beam_search])
def test_a_seed_decides(search: Callable[..., Hypotheses]) -> None:
    stepper = ToyStepper(5, seed=5)
    state = stepper.start(*range(20))
    how: dict[str, Any] = HOW | {"max_length": 8, "num_samples": 3}
    one, same, other = (search(stepper, state, generator=seeded(seed), **how) for seed in (1, 1, 2))
    assert torch.equal(one.tokens, same.tokens)
    assert torch.equal(one.scores, same.scores)
    assert one.tokens.shape != other.tokens.shape or not torch.equal(one.tokens, other.tokens)


@pytest.mark.parametrize("search", [sample, stochastic_beam_search])
def test_with_generators_of_their_own_items_are_the_same_in_any_batch(
    search: Callable[..., Hypotheses],
) -> None:
    stepper = ToyStepper(5, seed=5, sharpness=2.0)
    offsets = range(12)
    how: dict[str, Any] = HOW | {"max_length": 15, "num_samples": 3}
    together = search(
        stepper, stepper.start(*offsets), generator=[seeded(n) for n in offsets], **how
    )
    prefix = torch.tensor([[2]] * 12)
    mask = torch.tensor([[n == 3] for n in offsets])
    ragged = search(
        stepper,
        stepper.start(*offsets),
        generator=[seeded(n) for n in offsets],
        prefix=prefix,
        prefix_mask=mask,
        **how,
    )
    for item, offset in enumerate(offsets):
        alone = search(stepper, stepper.start(offset), generator=[seeded(item)], **how)
        assert torch.equal(together.scores[item], alone.scores[0])
        assert tokens_of(together, item) == tokens_of(alone, 0)
        if item != 3:
            assert tokens_of(ragged, item) == tokens_of(alone, 0)
    only = search(stepper, stepper.start(3), generator=[seeded(3)], prefix=prefix[:1], **how)
    assert tokens_of(ragged, 3) == tokens_of(only, 0)


def test_with_generators_of_their_own_other_limits_change_nothing() -> None:
    """Each item has a different maximum length."""
    stepper = ToyStepper(5, seed=5, sharpness=2.0)
    limits = [4, 9, 2, 15, 9]
    how: dict[str, Any] = {"begin": BEGIN, "end": END, "num_samples": 3}
    together = sample(
        stepper,
        stepper.start(*range(5)),
        max_length=torch.tensor(limits),
        generator=[seeded(n) for n in range(5)],
        **how,
    )
    for item, limit in enumerate(limits):
        for max_length in (limit, torch.tensor([limit])):
            alone = sample(
                stepper,
                stepper.start(item),
                max_length=max_length,
                generator=[seeded(item)],
                **how,
            )
            assert tokens_of(together, item) == tokens_of(alone, 0)


@pytest.mark.parametrize("generator", [seeded(0), [seeded(0)], None])
def test_rare_tokens_can_be_drawn(generator: Generators) -> None:
    """Random numbers with 24 bits reach only 70 of 2,000 tokens with a probability of 2e-9 each."""
    torch.manual_seed(0)
    draws = Noise(generator, 1, "sample").uniform([1000], 2)
    assert draws.dtype == torch.float64
    assert draws.shape == (1, 1000, 2)
    assert (draws * 2**24 % 1 > 0).float().mean() > 0.99
    assert 0 <= draws.min() <= draws.max() < 1
    probs = torch.cat(
        [torch.tensor([1 - 1999 * 2e-9], dtype=torch.float64), torch.full((1999,), 2e-9)]
    )
    # A number in the middle of each token's interval, which starts at the sum of the previous ones.
    wanted = (probs.cumsum(0) - probs / 2).expand(1, 1, -1)
    _, tokens = _Draw(wanted).choose(0, probs.log().expand(1, 2000, -1))
    assert tokens[0].tolist() == list(range(2000))


def test_without_replacement() -> None:
    """Every output of a small space is drawn once, and the order has the law of draws without
    replacement: p(first) = p, p(second | first) = p / (1 - p(first)).
    """
    stepper = ToyStepper(3, seed=6)
    how: dict[str, Any] = HOW | {"max_length": 2}
    every = every_output(stepper, 5, 2, complete=False)
    whole = stochastic_beam_search(stepper, stepper.start(5), num_samples=9, **how)
    assert sorted(tokens_of(whole, 0)) == sorted(output.tokens for output in every)
    assert (whole.scores[0, len(every) :] == -torch.inf).all()
    num_trials = 20_000
    drawn = stochastic_beam_search(
        stepper, stepper.start(*[5] * num_trials), num_samples=2, generator=seeded(1), **how
    )
    chance = {output.tokens: math.exp(output.log_prob) for output in every}
    expected = {
        (*one, 99, *other): chance[one] * chance[other] / (1 - chance[one])
        for one in chance
        for other in chance
        if one != other
    }
    pairs = [tokens_of(drawn, item) for item in range(num_trials)]
    assert abs(excess(Counter((*one, 99, *other) for one, other in pairs), expected)) < 4


def test_inclusion_probabilities_make_estimates_unbiased() -> None:
    """Kool et al. 2019, eq. 16: sum of p(y) / q(y) f(y), q = 1 - exp(-exp(log p - kappa))."""
    stepper = ToyStepper(4, seed=7)
    num_trials, k = 10_000, 3
    drawn = stochastic_beam_search(
        stepper, stepper.start(*[5] * num_trials), num_samples=k + 1, generator=seeded(2), **HOW
    )
    log_probs = drawn.totals.double()[:, :k]
    kappa = drawn.scores[:, k:]
    included = -torch.expm1(-torch.exp(log_probs - kappa))
    weights = log_probs.exp() / included
    estimates = (weights * drawn.lengths[:, :k]).sum(1)
    truth = sum(
        math.exp(output.log_prob) * len(output.tokens)
        for output in every_output(stepper, 5, 3, complete=False)
    )
    error = estimates.std() / math.sqrt(num_trials)
    assert abs(estimates.mean() - truth) < 4 * error
    assert abs(weights.sum(1).mean() - 1) < 4 * weights.sum(1).std() / math.sqrt(num_trials)
    assert error < 0.02 * truth
    assert (drawn.scores.diff() <= 0).all()


def test_perturbed_scores_are_gumbel() -> None:
    """The maximum of all scores is distributed as a standard Gumbel: mean 0.5772, variance 1.645."""
    stepper = ToyStepper(4, seed=8)
    drawn = stochastic_beam_search(
        stepper, stepper.start(*[1] * 20_000), num_samples=2, generator=seeded(3), **HOW
    )
    first = drawn.scores[:, 0]
    assert first.mean().item() == pytest.approx(0.5772, abs=0.04)
    assert first.var().item() == pytest.approx(math.pi**2 / 6, abs=0.08)


def test_errors_say_what_to_do() -> None:
    stepper = ToyStepper(4)
    state = stepper.start(1, 2)
    for how in ({"temperature": 0.0}, {"top_p": 0.0}, {"top_p": 1.5}, {"top_k": 0}):
        with pytest.raises(ValueRangeError, match="use greedy"):
            sample(stepper, state, **how, **HOW)
    for search in (sample, stochastic_beam_search):
        with pytest.raises(ValueRangeError, match="num_samples must be at least 1, got 0"):
            search(stepper, state, num_samples=0, **HOW)
        with pytest.raises(ShapeError, match="one for each of 2 items, got 1"):
            search(stepper, state, num_samples=1, generator=[seeded(0)], **HOW)

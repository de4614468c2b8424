"""Confidence intervals have the right coverage and agree with sacrebleu's bootstrap, and a paired
comparison detects a difference that two separate intervals cannot.
"""

import time

import numpy as np
import pytest
import sacrebleu

from foveal.errors import ShapeError
from foveal.metrics import bleu, compare, exact_match, measure, perplexity, word_error_rate
from foveal.metrics._metrics import wrong_words
from foveal.metrics._slices import length_slices, rarity_slices

pytestmark = pytest.mark.slow


def corpus(seed: int, size: int, error_rate: float) -> tuple[list[str], list[str]]:
    """Draw references of 1 to 8 words, and hypotheses in which each word is wrong with the same
    probability.
    """
    generator = np.random.default_rng(seed)
    references, hypotheses = [], []
    for length in generator.integers(1, 9, size=size):
        words = generator.integers(20, size=length)
        wrong = generator.random(length) < error_rate
        references.append(" ".join(f"w{w}" for w in words))
        hypotheses.append(
            " ".join("x" if e else f"w{w}" for w, e in zip(words, wrong, strict=True))
        )
    return references, hypotheses


def test_the_bootstrap_covers_the_truth() -> None:
    """About 95 % of the intervals of 200 corpora contain the known error rate."""
    metrics = [
        measure(word_error_rate(*corpus(seed, 100, 0.2)), num_draws=200) for seed in range(200)
    ]
    covered = np.mean([metric.low <= 20 <= metric.high for metric in metrics])
    assert 0.91 <= covered <= 0.985


@pytest.mark.parametrize("rate", [0.02, 0.18])
def test_the_interval_of_a_share_covers_the_truth(rate: float) -> None:
    generator = np.random.default_rng(1)
    covered = []
    for _ in range(500):
        wrong = generator.random(100) < rate
        metric = measure(wrong_words(["a"] * 100, ["b" if w else "a" for w in wrong]))
        covered.append(metric.low <= 100 * rate <= metric.high)
    assert 0.92 <= np.mean(covered) <= 0.985


def test_no_errors_in_a_hundred_words_are_no_proof_of_none() -> None:
    metric = measure(wrong_words(["a"] * 100, ["a"] * 100))
    assert metric.value == metric.low == 0
    assert metric.high == pytest.approx(3.7, abs=0.1)  # Wilson 1927; the rule of three gives 3


def test_the_interval_of_bleu_is_that_of_sacrebleu() -> None:
    references, hypotheses = corpus(0, 200, 0.3)
    theirs = sacrebleu.BLEU(force=True).corpus_score(hypotheses, [references], n_bootstrap=1000)
    ours = measure(bleu(references, hypotheses))
    assert ours.value == pytest.approx(theirs.score)
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, rel=0.15)


def test_the_same_seed_gives_the_same_interval() -> None:
    statistics = word_error_rate(*corpus(0, 50, 0.2))
    assert measure(statistics, seed=3) == measure(statistics, seed=3)
    assert measure(statistics, seed=3) != measure(statistics, seed=4)


def test_a_paired_comparison_sees_a_small_improvement() -> None:
    """System b is a with a few errors fixed: the intervals overlap, but the difference is
    significant.
    """
    references, hypotheses = corpus(0, 300, 0.3)
    better = [
        r if n % 12 == 0 else h for n, (r, h) in enumerate(zip(references, hypotheses, strict=True))
    ]
    a, b = word_error_rate(references, hypotheses), word_error_rate(references, better)
    assert measure(b).high > measure(a).low
    comparison = compare(a, b)
    assert comparison.high < 0
    assert comparison.p_value < 0.01
    assert comparison.difference == pytest.approx(b.value - a.value)


def test_systems_that_are_the_same_do_not_differ() -> None:
    statistics = exact_match(*corpus(0, 100, 0.1))
    assert compare(statistics, statistics).p_value == 1
    assert compare(statistics, statistics)[:3] == (0, 0, 0)


def test_p_values_are_even_where_there_is_no_difference() -> None:
    """Two systems with the same error rate differ at the 10 % level in about one of ten
    comparisons.
    """
    values = []
    for seed in range(120):
        references, first = corpus(seed, 80, 0.2)
        generator = np.random.default_rng(10_000 + seed)
        wrong = [generator.random(len(text.split())) < 0.2 for text in references]
        second = [
            " ".join("x" if w else token for token, w in zip(text.split(), row, strict=True))
            for text, row in zip(references, wrong, strict=True)
        ]
        values.append(
            compare(
                word_error_rate(references, first),
                word_error_rate(references, second),
                num_draws=200,
            ).p_value
        )
    assert 0.04 <= np.mean(np.array(values) < 0.1) <= 0.17


def test_other_examples_or_metrics_are_not_compared() -> None:
    with pytest.raises(ShapeError, match=r"wer on 2 examples and wer on 1.*same file"):
        compare(word_error_rate(["a", "b"], ["a", "b"]), word_error_rate(["a"], ["b"]))
    with pytest.raises(ShapeError, match="one metric"):
        compare(word_error_rate(["a"], ["a"]), exact_match(["a"], ["b"]))


def test_many_examples_take_bounded_memory_and_little_time() -> None:
    began = time.perf_counter()
    measure(perplexity([-1.0, -2.0] * 50_000, [1, 2] * 50_000), num_draws=200)
    assert time.perf_counter() - began < 20


def test_length_slices_hold_every_example_once() -> None:
    statistics = wrong_words(["a"] * 9, ["a"] * 6 + ["b"] * 3)
    slices = length_slices(statistics, [1, 1, 1, 2, 3, 4, 7, 8, 20], unit="letters")
    assert [(s.name, s.num_examples) for s in slices] == [
        ("1 letters", 3),
        ("2 to 3 letters", 2),
        ("4 to 7 letters", 2),
        ("8 to 20 letters", 2),
    ]
    assert [s.metric.value for s in slices] == [0, 0, 50, 100]


def test_one_length_is_one_slice() -> None:
    (only,) = length_slices(wrong_words(["a", "b"], ["a", "a"]), [5, 5])
    assert only.num_examples == 2


def test_rarity_slices_go_by_the_rarest_symbol() -> None:
    statistics = wrong_words(["x"] * 4, ["x", "x", "y", "y"])
    slices = rarity_slices(statistics, ["aa", "ab", "ac", "az"], known="abc", rare={"c"})
    assert [(s.num_examples, s.metric.value) for s in slices] == [(1, 100), (1, 100), (2, 0)]

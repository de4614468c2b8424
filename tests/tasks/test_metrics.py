"""Metrics equal the reference implementations on the whole, are right on cases worked out by hand, and
their counts add up: the metric of a slice is the metric of that slice's outputs.
"""

import math
from collections.abc import Callable
from typing import Any

import jiwer
import numpy as np
import pytest
import sacrebleu
from hypothesis import assume, given, settings, strategies as st

from foveal.errors import ShapeError
from foveal.metrics import (
    Statistics,
    accuracy,
    bleu,
    character_error_rate,
    chrf,
    exact_match,
    f1,
    length_to_failure,
    perplexity,
    span_f1,
    spans,
    word_error_rate,
)
from foveal.metrics._metrics import wrong_words

pytestmark = pytest.mark.slow

Texts = list[str]
TextMetric = Callable[[Texts, Texts], Statistics]

TEXT_METRICS: dict[str, TextMetric] = {
    "exact_match": exact_match,
    "wrong_words": wrong_words,
    "word_error_rate": word_error_rate,
    "character_error_rate": character_error_rate,
    "bleu": bleu,
    "bleu, tokenized": lambda r, h: bleu(r, h, tokenize="none"),
    "chrf": chrf,
    "length_to_failure": length_to_failure,
}

words = st.lists(st.sampled_from(["a", "b", "c", "dd", ".", "ø"]), min_size=1, max_size=6)
sentences = words.map(" ".join)
pairs = st.lists(st.tuples(sentences, sentences | st.just("")), min_size=1, max_size=8)


def two(pairs: list[tuple[str, str]]) -> tuple[Texts, Texts]:
    references, hypotheses = zip(*pairs, strict=True)
    return list(references), list(hypotheses)


@given(pairs=pairs)
@settings(deadline=None)
def test_the_whole_equals_the_reference_implementation(pairs: list[tuple[str, str]]) -> None:
    references, hypotheses = two(pairs)
    expected = {
        "word_error_rate": 100 * jiwer.wer(references, hypotheses),
        "character_error_rate": 100 * jiwer.cer(references, hypotheses),
        "bleu": sacrebleu.corpus_bleu(hypotheses, [references], force=True).score,
        "bleu, tokenized": sacrebleu.corpus_bleu(
            hypotheses, [references], tokenize="none", force=True
        ).score,
        "chrf": sacrebleu.corpus_chrf(hypotheses, [references]).score,
    }
    got = {name: TEXT_METRICS[name](references, hypotheses).value for name in expected}
    assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", TEXT_METRICS)
@given(pairs=pairs, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_counts_add_up(name: str, pairs: list[tuple[str, str]], seed: int) -> None:
    metric = TEXT_METRICS[name]
    chosen = np.random.default_rng(seed).random(len(pairs)) < 0.6
    assume(chosen.any())
    some = [pair for pair, keep in zip(pairs, chosen, strict=True) if keep]
    assert metric(*two(pairs)).subset(chosen).value == pytest.approx(metric(*two(some)).value)


def test_by_hand() -> None:
    references, hypotheses = ["a b c d", "e f"], ["a x c", "e f"]
    assert exact_match(references, hypotheses).value == 50
    assert wrong_words(references, hypotheses).value == 50
    assert word_error_rate(references, hypotheses).value == pytest.approx(100 * 2 / 6)
    assert character_error_rate(["abc", ""], ["abe", "x"]).value == pytest.approx(100 * 2 / 3)
    assert bleu(references, references).value == pytest.approx(100)
    assert perplexity([2 * math.log(0.5), math.log(0.25)], [2, 1]).value == pytest.approx(
        (2 * 2 * 4) ** (1 / 3)
    )


def test_an_empty_reference_costs_what_is_said() -> None:
    assert word_error_rate(["", "a"], ["x y", "a"]).value == 200
    assert word_error_rate(["", ""], ["", ""]).value == 0


def test_signatures_name_what_computed_them() -> None:
    texts = ["a b c d"]
    assert bleu(texts, texts, tokenize="none").signature.startswith(
        "nrefs:1|case:mixed|eff:no|tok:none"
    )
    assert f"version:{sacrebleu.__version__}" in chrf(texts, texts).signature
    assert word_error_rate(texts, texts).signature.startswith("jiwer 4")


def f1_by_definition(gold: Texts, predicted: Texts, label: str) -> float:
    right = sum(g == p == label for g, p in zip(gold, predicted, strict=True))
    precision = right / max(predicted.count(label), 1)
    recall = right / max(gold.count(label), 1)
    return 100 * 2 * precision * recall / (precision + recall) if right else 0.0


labels = st.sampled_from("abc")


@given(pairs=st.lists(st.tuples(labels, labels), min_size=1, max_size=12))
def test_macro_f1_is_the_mean_over_the_labels_that_occur(pairs: list[tuple[str, str]]) -> None:
    gold, predicted = two(pairs)
    each = [f1_by_definition(gold, predicted, label) for label in {*gold, *predicted}]
    got = f1([[g] for g in gold], [[p] for p in predicted])
    assert got.value == pytest.approx(sum(each) / len(each))


@given(pairs=st.lists(st.tuples(labels, labels), min_size=1, max_size=12))
def test_micro_f1_of_single_labels_is_accuracy(pairs: list[tuple[str, str]]) -> None:
    gold, predicted = two(pairs)
    rows = [[g] for g in gold], [[p] for p in predicted]
    assert f1(*rows, average="micro").value == pytest.approx(accuracy(*rows).value)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", set()),
        ("B-A I-A O", {(0, 2, "A")}),
        ("B-A B-A", {(0, 1, "A"), (1, 2, "A")}),
        ("I-A I-A I-B", {(0, 2, "A"), (2, 3, "B")}),
        ("O I-A", {(1, 2, "A")}),
        ("B-A I-B", {(0, 1, "A"), (1, 2, "B")}),
    ],
)
def test_spans_as_conlleval_has_them(tags: str, expected: set[tuple[int, int, str]]) -> None:
    assert spans(tags.split()) == expected


def test_span_f1_counts_over_the_corpus() -> None:
    references = [["B-A", "I-A", "O"], ["B-B", "O", "B-A"]]
    hypotheses = [["B-A", "O", "O"], ["B-B", "O", "B-A"]]
    assert span_f1(references, hypotheses).value == pytest.approx(100 * 2 * 2 / (3 + 3))


def test_nothing_said_and_nothing_to_say_is_no_division_by_zero() -> None:
    assert span_f1([["O"]], [["O"]]).value == 0


@pytest.mark.parametrize("name", TEXT_METRICS)
def test_unpaired_outputs_are_refused(name: str) -> None:
    with pytest.raises(ShapeError, match=r"2 references and 1 hypotheses.*Use an empty string"):
        TEXT_METRICS[name](["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("output", "share"),
    [("a b c", 4), ("a b", 2), ("a b c d", 3), ("x a b c", 0), ("a x c", 1), ("", 0)],
)
def test_an_output_fails_at_its_first_error_or_at_a_wrong_end(output: str, share: int) -> None:
    """The reference has four tokens: a, b, c and the end."""
    assert length_to_failure(["a b c"], [output]).value == 25 * share


@pytest.mark.parametrize("metric", [accuracy, f1, span_f1])
def test_labels_of_another_number_are_refused(metric: Any) -> None:
    with pytest.raises(ShapeError, match="example 2 has 2 labels and 1 predicted labels"):
        metric([["O"], ["O", "O"]], [["O"], ["O"]])

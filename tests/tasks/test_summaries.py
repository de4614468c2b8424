"""Summaries: ROUGE against counts by hand and rouge-score, several references, baselines, repeated n-grams."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from foveal.data import Example, WhitespaceSpec
from foveal.metrics import compare, measure, rouge
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.serving._predictor import Predictor
from foveal.tasks import PredictionSpec, Transduction, TransductionEnsemble, TransductionSpec
from foveal.tasks._summaries import first_sentence
from foveal.tasks.explaining._explanation import Way

SUMMARIES = [
    Example("a b c .\nd e f .", "a b c"),
    Example("a b c .\nd e f .", "x y"),
    Example("g h .\ni j .", "i j"),
]


def task_of(**choices: object) -> Transduction:
    torch.manual_seed(0)
    spec = TransductionSpec(
        source=WhitespaceSpec(),
        target=WhitespaceSpec(),
        outputs="summaries",
        model=Seq2SeqSpec(
            encoder=TextEncoderSpec(embedding_size=4, hidden_size=4),
            decoder=DecoderSpec(embedding_size=4, hidden_size=8),
        ),
        prediction=PredictionSpec(max_length=12, **choices),  # pyright: ignore[reportArgumentType]
    )
    return spec.build_from(SUMMARIES)


@pytest.mark.parametrize(
    ("overlap", "expected"),
    # "the cat" and "on mat" are shared: 4 of 5 and of 6 words, 1 of 4 and of 5 pairs, 4 words in order.
    [("1", 2 * 4 / 11), ("2", 2 * 1 / 9), ("L", 2 * 4 / 11)],
)
def test_overlaps_equal_counts_by_hand(overlap: str, expected: float) -> None:
    found = rouge(["the cat sat on mat"], ["The cat, is on a mat!"], overlap=overlap)  # pyright: ignore[reportArgumentType]
    assert found.value == pytest.approx(100 * expected)


def test_the_order_of_words_counts_only_for_the_subsequence() -> None:
    assert rouge(["a b c"], ["c b a"], overlap="1").value == pytest.approx(100)
    assert rouge(["a b c"], ["c b a"], overlap="L").value == pytest.approx(100 / 3)


def test_a_word_counts_at_most_as_often_as_in_the_reference() -> None:
    assert rouge(["the cat"], ["the the the"], overlap="1").value == pytest.approx(100 * 2 / 5)


def test_the_best_reference_counts() -> None:
    assert rouge([["a b", "c d"], ["e", "f"]], ["c d", "g"], overlap="1").value == pytest.approx(50)


def test_empty_texts_have_no_overlap() -> None:
    assert rouge(["", "a"], ["a", ""], overlap="2").value == 0.0


def test_other_scripts_need_their_own_tokens() -> None:
    assert rouge(["猫 が いる"], ["犬 が いる"]).value == 0.0
    assert rouge(["猫 が いる"], ["犬 が いる"], tokenize="none").value == pytest.approx(200 / 3)


def test_values_have_bootstrap_intervals() -> None:
    good, bad = (rouge(["a b"] * 20, [text] * 10 + ["x"] * 10) for text in ("a b", "a"))
    found = measure(good)
    assert found.low < found.value < found.high
    assert compare(bad, good).difference == pytest.approx(good.value - bad.value)


def test_values_equal_those_of_rouge_score() -> None:
    scorers = pytest.importorskip("rouge_score.rouge_scorer")
    scorer = scorers.RougeScorer(["rouge1", "rouge2", "rougeL"])
    draw = random.Random(5)
    words = ["The", "cat's", "sat", "on-a", "mat", "été", "2nd", ".", "_x", ""]
    for _ in range(200):
        texts = [" ".join(draw.choices(words, k=draw.randrange(12))) for _ in range(3)]
        expected = scorer.score_multi(texts[:2], texts[2])
        for overlap in ("1", "2", "L"):
            value = rouge([texts[:2]], [texts[2]], overlap=overlap).value
            assert value == pytest.approx(100 * expected[f"rouge{overlap}"].fmeasure)


def test_a_source_is_summarized_once_and_scored_with_all_references() -> None:
    task = task_of()
    evaluation = task.evaluate(SUMMARIES)
    assert list(evaluation.statistics) == ["rouge1", "rouge2", "rougeL"]
    assert evaluation.main.name == "rouge1"
    outputs = [prediction.output for prediction in evaluation.predictions]
    assert len(outputs) == 2
    expected = rouge([["a b c", "x y"], ["i j"]], outputs, overlap="1").value
    assert evaluation.statistics["rouge1"].value == pytest.approx(expected)
    together = TransductionEnsemble([task, task]).evaluate(SUMMARIES)
    assert together.statistics["rouge1"].num_examples == 2


def test_the_first_sentence_is_a_baseline() -> None:
    baseline = task_of().evaluate(SUMMARIES).baseline
    # The first sentences score 100 and 0, copies of the sources 2 * 3 / 9 and 2 * 2 / 6.
    assert baseline == ("a copy of the source", pytest.approx(100 * 2 / 3))
    baseline = task_of().evaluate(SUMMARIES[:1]).baseline
    assert baseline == ("the first sentence of the source", pytest.approx(100))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("One. Two.", "One."), ("one\ntwo. three", "one"), ("Why ? So .", "Why ?"), ("", "")],
)
def test_first_sentences(text: str, expected: str) -> None:
    assert first_sentence(text) == expected


@pytest.mark.parametrize("beam_size", [1, 3])
def test_no_ngram_is_repeated(beam_size: int) -> None:
    task, asked = task_of(beam_size=beam_size), [Example("a b c .\nd e f .")]
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.normal_(std=1.5)
        task.model.decoder.output.bias[3] = -30.0  # an end would hide the repetition
    usual = task.predict(asked)[0].output.split()
    assert len(set(pairwise(usual))) < len(usual) - 1
    settings = Predictor(task, task.spec).settings(beam_size=beam_size, no_repeat_ngram=2)
    blocked = task.predict(asked, settings)[0].output.split()
    assert len(set(pairwise(blocked))) == len(blocked) - 1 == 11
    task.prediction = replace(task.prediction, no_repeat_ngram=2)
    explained = task.explain(asked[0], Way(beam_size=3)).output
    assert explained == task.predict(asked, replace(settings, beam_size=3))[0].output

"""Explanations against the predictions of the tasks, and against steps computed by hand."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from foveal.bundles import load_bundle
from foveal.data import Example, FeaturesSpec
from foveal.errors import ValueRangeError
from foveal.inspection import Explanation, explain
from foveal.inspection.explaining._erasure import erased
from foveal.inspection.explaining._explanation_page import explanation_page
from foveal.models import SegmentSpec, Seq2SeqSpec, SigmoidSpec
from foveal.tasks import PredictionSpec, Transduction, TransductionSpec
from tests.inspection.pages import check_page
from tests.tasks.stored import BUNDLES
from tests.tasks.tiny import DECODER, ENCODER, train, transduction, upper_cased

KINDS = (
    "transduction",
    "classification",
    "documents",
    "pair_classification",
    "tagging",
    "language_modeling",
)
INPUTS = {
    "transduction": "edcba",
    "classification": "the good old ship",
    "pair_classification": "the good old ship\ta good ship",
    "tagging": "the good old ship",
    "language_modeling": "abc",
}
KEYS = {
    "task",
    "input",
    "output",
    "score",
    "confidence",
    "nbest",
    "sources",
    "steps",
    "attention",
    "exclusive",
    "best",
    "tree",
    "others",
    "layout",
    "picture",
}


@pytest.fixture(scope="module", params=KINDS)
def any_task(request: pytest.FixtureRequest) -> Any:
    return load_bundle(BUNDLES / "0.1.0" / request.param)


@pytest.fixture(scope="module")
def task() -> Transduction:
    loaded = load_bundle(BUNDLES / "0.1.0" / "transduction")
    assert isinstance(loaded, Transduction)
    return loaded


@pytest.fixture(scope="module")
def segments() -> Transduction:
    """A tiny model with segment attention."""
    torch.manual_seed(0)
    made = transduction(decoder=replace(DECODER, attention=SegmentSpec()))
    train(made, upper_cased(100), epochs=2)
    return made


def _explained(task: Any, text: str | None = None, **changes: Any) -> Explanation:
    return explain(task, Example(INPUTS[task.spec.kind] if text is None else text), **changes)


def test_the_data_is_that_of_the_contract_and_json_can_hold_it(any_task: Any) -> None:
    data = _explained(any_task).to_data()
    assert set(data) == KEYS
    assert json.loads(json.dumps(data)) == data
    assert data["task"] == any_task.spec.kind
    assert data["steps"]
    for step in data["steps"]:
        assert set(step) == {
            "token",
            "probability",
            "alternatives",
            "weights",
            "forced",
            "copied",
        }
        listed = [each["probability"] for each in step["alternatives"]]
        assert listed == sorted(listed, reverse=True)
        assert sum(listed) <= 1 + 1e-5
        if step["weights"] is not None:
            assert len(step["weights"]) == len(data["sources"])


def test_an_explanation_says_what_a_prediction_says(any_task: Any) -> None:
    explanation = _explained(any_task)
    if not explanation.nbest:
        assert any_task.spec.kind == "language_modeling"
        return
    size = len(explanation.nbest)
    settings = PredictionSpec(nbest=size, beam_size=max(5, size), trace=True)
    (prediction,) = any_task.predict([Example(explanation.input)], settings)
    assert explanation.output == prediction.output
    assert [each.output for each in explanation.nbest] == [each.output for each in prediction.nbest]
    for ours, theirs in zip(explanation.nbest, prediction.nbest, strict=True):
        assert math.isclose(ours.score, theirs.score, abs_tol=1e-4)
        assert math.isclose(ours.probability, theirs.probability, abs_tol=1e-4)
    if explanation.task == "pair_classification":  # words attend to each other here
        assert explanation.others[0] == prediction.trace
    elif prediction.trace is not None:
        rows = [step.weights for step in explanation.steps][: len(prediction.trace.weights)]
        torch.testing.assert_close(
            torch.tensor(rows), torch.tensor(prediction.trace.weights), rtol=0, atol=1e-5
        )


def test_the_steps_of_an_output_multiply_to_its_score(task: Transduction) -> None:
    explanation = _explained(task)
    total = sum(math.log(step.probability) for step in explanation.steps)
    assert math.isclose(total, explanation.score, abs_tol=1e-4)
    assert [step.token for step in explanation.steps] == [*explanation.output, ""]
    for step in explanation.steps:
        assert step.weights is not None
        assert math.isclose(sum(step.weights), 1, abs_tol=1e-5)


def test_a_language_model_gives_the_probability_of_the_text() -> None:
    model = load_bundle(BUNDLES / "0.1.0" / "language_modeling")
    explanation = explain(model, Example("abc"))
    perplexity = model.evaluate([Example("abc")]).value
    assert math.isclose(explanation.confidence, 1 / perplexity, rel_tol=1e-4)
    assert [step.token for step in explanation.steps] == ["a", "b", "c", ""]


def test_tags_are_explained_one_by_one() -> None:
    model = load_bundle(BUNDLES / "0.1.0" / "tagging")
    explanation = explain(model, Example("the good old ship"))
    (prediction,) = model.predict([Example("the good old ship")])
    found = [step.probability for step in explanation.steps]
    assert found == pytest.approx(prediction.token_probabilities, abs=1e-5)
    assert explain(model, Example("")).steps == ()


def test_what_a_beam_kept(task: Transduction) -> None:
    explanation = _explained(task, beam_size=3)
    tree = explanation.tree
    assert tree is not None
    ends = [branch for branch in tree if branch.token == ""]
    assert len(ends) == len(explanation.nbest) == 3
    scores = list[float]()
    for branch in ends:
        total, at = math.log(branch.probability), branch.parent
        while at >= 0:
            assert tree[at].kept
            total, at = total + math.log(tree[at].probability), tree[at].parent
        scores.append(total)
    assert sorted(scores) == pytest.approx(sorted(one.score for one in explanation.nbest), abs=1e-4)
    # Each step keeps at most `beam_size` prefixes.
    depths = list[int]()
    for branch in tree:
        depths.append(1 if branch.parent < 0 else depths[branch.parent] + 1)
    written = [depth for depth, branch in zip(depths, tree, strict=True) if branch.token]
    assert max(written.count(depth) for depth in written) == 3
    best = max((each for each in explanation.hypotheses if each.finished), key=lambda e: e.score)
    assert math.isclose(best.score, explanation.score, abs_tol=1e-4)


def test_an_output_begins_with_its_prefix(task: Transduction) -> None:
    free = _explained(task, "abc")
    for prefix in ("C", "CB", free.output):
        explanation = _explained(task, "abc", prefix=list(prefix))
        assert explanation.output.startswith(prefix)
    assert math.isclose(explanation.score, free.score, abs_tol=1e-5)
    with pytest.raises(ValueRangeError, match="got 'CB', which no output"):
        _explained(task, "abc", prefix=["CB"])


def test_forcing_what_the_model_reads_changes_nothing(task: Transduction) -> None:
    # The beam size is 1: forcing applies to every hypothesis, and others could gain from it.
    free = _explained(task, beam_size=1)
    own = {n: step.weights for n, step in enumerate(free.steps) if step.weights is not None}
    # Weights do not have to be normalized.
    forced = _explained(task, beam_size=1, forced={n: [3 * w for w in own[n]] for n in own})
    assert forced.output == free.output
    assert math.isclose(forced.score, free.score, abs_tol=1e-5)
    assert all(step.forced for step in forced.steps)
    for ours, theirs in zip(forced.steps, free.steps, strict=True):
        assert math.isclose(ours.probability, theirs.probability, abs_tol=1e-6)


def test_forcing_another_place_writes_what_stands_there(task: Transduction) -> None:
    free = _explained(task, "abc")
    assert free.output == "ABC"
    there = _explained(task, "abc", forced={0: [0, 0, 1]})
    assert there.steps[0].weights == (0, 0, 1)
    assert [step.forced for step in there.steps] == [True] + [False] * (len(there.steps) - 1)
    share = {each.token: each.probability for each in there.steps[0].alternatives}
    before = {each.token: each.probability for each in free.steps[0].alternatives}
    assert share.get("C", 0) > before.get("C", 0)
    assert share.get("A", 0) < before.get("A", 0)


def test_segments_are_outlined_and_forced_as_they_are(segments: Transduction) -> None:
    free = explain(segments, Example("abcde"))
    assert free.attention == "segment"
    assert not free.exclusive
    assert free.best is not None
    assert [len(row) for row in free.best] == [5] * len(free.steps)
    assert free.trace is not None
    assert free.trace.best == free.best
    forced = explain(segments, Example("abcde"), forced={0: [1, 1, 0.5, 0, 0]})
    assert forced.steps[0].weights == (1, 1, 0.5, 0, 0)
    assert forced.best is not None
    assert not any(forced.best[0])
    with pytest.raises(ValueRangeError, match="at least 0 and at most 1, got 0 to 2"):
        explain(segments, Example("abcde"), forced={0: [2, 0, 0, 0, 0]})


def _no_attention() -> Transduction:
    return transduction(decoder=replace(DECODER, attention=None))


@pytest.mark.parametrize(
    ("make", "changes", "message"),
    [
        (None, {"beam_size": 0}, "must be at least 1"),
        (None, {"forced": {0: [1, 0]}}, "each of the 5 positions"),
        (None, {"forced": {-1: [1, 0, 0, 0, 0]}}, "a step number from 0 and"),
        (None, {"forced": {0: [0] * 5}}, "at least one forced weight must be above 0"),
        (None, {"forced": {0: [-1, 2, 0, 0, 0]}}, "at least 0, got -1 to 2"),
        (_no_attention, {"forced": {0: [1] * 5}}, "a decoder with attention, got one without"),
    ],
)
def test_what_cannot_be_forced(
    task: Transduction,
    make: Callable[[], Transduction] | None,
    changes: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(ValueRangeError, match=message):
        _explained(task if make is None else make(), **changes)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_only_what_is_written_is_forced(kind: str) -> None:
    model = load_bundle(BUNDLES / "0.1.0" / kind)
    with pytest.raises(ValueRangeError, match=f"tokens one by one, got {model.spec.kind}"):
        explain(model, Example("a"), prefix=["a"])


def test_without_attention_nothing_is_drawn_that_is_not_there() -> None:
    explanation = explain(_no_attention(), Example("abc"))
    assert explanation.attention is None
    assert explanation.trace is None
    check_page(explanation_page(explanation))


def test_sigmoid_attention_is_not_exclusive() -> None:
    made = transduction(decoder=replace(DECODER, attention=SigmoidSpec()))
    assert not explain(made, Example("ab")).exclusive


@pytest.mark.parametrize("text", ["", "a", "<b>&", "edcba" * 8])
def test_pages_of_any_input(any_task: Any, text: str) -> None:
    kind = any_task.spec.kind
    example = Example(f"{text}\t{text}" if kind == "pair_classification" else text)
    explanation = explain(any_task, example)
    change = None
    if kind in ("transduction", "classification", "pair_classification"):
        change = erased(any_task, example, [step.token for step in explanation.steps])
    check_page(explanation_page(explanation, change))


def test_a_page_shows_answer_steps_attention_and_search(task: Transduction) -> None:
    explanation = _explained(task)
    change = erased(task, Example("edcba"), [step.token for step in explanation.steps])
    text = explanation_page(explanation, change)
    for title in (
        "Answer",
        "Probability of each step",
        "Attention",
        "Influence of each input position",
        "Beam search",
    ):
        assert f">{title}</h2>" in text
    assert text.count("<svg") == 4


def test_features_are_places_too() -> None:
    examples = [Example("ab", "AB", features="V;PST"), Example("ba", "BA", features="N;PL")]
    spec = TransductionSpec(
        model=Seq2SeqSpec(encoder=ENCODER, decoder=DECODER), features=FeaturesSpec()
    )
    inflecting = spec.build_from(examples)
    explanation = explain(inflecting, examples[0], forced={0: [0, 1, 0, 0]})
    assert explanation.sources == ("V", "PST", "a", "b")
    assert explanation.steps[0].weights == (0, 1, 0, 0)
    change = erased(inflecting, examples[0], [step.token for step in explanation.steps])
    assert change.shape == (4, len(explanation.steps))


def test_a_document_is_explained_by_its_sentences() -> None:
    task = load_bundle(BUNDLES / "0.1.0" / "documents")
    explanation = explain(task, Example("the good old ship\n\na cat"))
    (trace,) = explanation.others
    assert trace.layout[:3] == ("sentences", 2, 4)
    assert explanation.sources == ("the", "good", "old", "ship", "a", "cat")
    weights = explanation.steps[0].weights
    assert weights is not None
    assert sum(weights) == pytest.approx(1)
    change = erased(task, Example("the good old ship\n\na cat"), [explanation.output])
    assert change.shape == (6, 1)
    without = task.predict([Example("the zzz old ship\na cat")], PredictionSpec(nbest=2))[0]
    scores = {one.output: one.score for one in without.nbest}
    assert explanation.score + change[1, 0] == pytest.approx(scores[explanation.output], abs=1e-5)


def test_a_pair_is_explained_by_both_texts() -> None:
    task = load_bundle(BUNDLES / "0.1.0" / "pair_classification")
    example = Example("the good old ship\ta cat")
    explanation = explain(task, example)
    read, *trees = explanation.others
    assert (read.targets, read.sources) == (("the", "good", "old", "ship"), ("a", "cat"))
    assert [tree.sources for tree in trees] == [read.targets, read.sources]
    change = erased(task, example, [explanation.output])
    (without,) = task.predict([Example("the good old ship\ta zzz")], PredictionSpec(nbest=2))
    scores = {one.output: one.score for one in without.nbest}
    assert explanation.score + change[5, 0] == pytest.approx(scores[explanation.output], abs=1e-5)
    check_page(explanation_page(explanation, change))

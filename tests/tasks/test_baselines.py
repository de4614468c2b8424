"""Baselines: scores of answers without a model, and the warning if a model is no better."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example, InMemory
from foveal.data.vocabularies._tally import Tally
from foveal.models import Classifier, ClassifierSpec, Seq2SeqSpec, TaggerSpec
from foveal.tasks import ClassificationSpec, TaggingSpec, TransductionSpec
from foveal.training import TrainingSpec, fit
from tests.tasks.stored import BUNDLES
from tests.tasks.tiny import DECODER, ENCODER, documents, pairs, stories, tasks

LABELED = [Example("a b", "yes"), Example("b c", "yes"), Example("c", "yes"), Example("a", "no")]
TAGGED = [
    Example("run the run", "V D N"),
    Example("run", "V"),
    Example("cat", "N"),
    Example("a cat", "D N"),
]


def test_the_most_frequent_label_is_the_baseline_of_classification() -> None:
    task = ClassificationSpec(model=ClassifierSpec(encoder=ENCODER)).build_from(LABELED)
    evaluation = task.evaluate([*LABELED, Example("x", "no")])
    assert evaluation.baseline == ("the most frequent label", pytest.approx(60.0))


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        ("documents", documents(30)),
        ("pair_classification", pairs(30)),
        ("question_answering", stories(30)),
    ],
)
def test_every_task_with_labels_has_a_baseline(kind: str, examples: list[Example]) -> None:
    task = tasks()[kind]
    references = [task.reference(example) for example in examples]  # pyright: ignore[reportAttributeAccessIssue]
    baseline = task.evaluate(examples).baseline
    assert baseline is not None
    often = references.count(task.vocabularies.majority[""])
    assert baseline.value == pytest.approx(100 * often / len(references))


def test_the_most_frequent_tag_of_each_word_is_the_baseline_of_tagging() -> None:
    task = TaggingSpec(model=TaggerSpec(encoder=ENCODER)).build_from(TAGGED)
    # "run" is V twice and N once, "cat" is N, and a new word gets N, the most frequent tag.
    assert task.trivial_answers(Example("the run new cat")) == {
        "the most frequent tag of each word": "D V N N"
    }
    baseline = task.evaluate(TAGGED).baseline
    assert baseline is not None
    assert baseline.value == pytest.approx(100 * 6 / 7)


def test_the_better_of_two_rules_is_the_baseline_of_transduction() -> None:
    spec = TransductionSpec(model=Seq2SeqSpec(encoder=ENCODER, decoder=DECODER))
    copied = [Example("ab", "ab"), Example("ba", "ba"), Example("a", "b"), Example("bb", "b")]
    baseline = spec.build_from(copied).evaluate(copied).baseline
    assert baseline == ("the most frequent target", pytest.approx(50.0))
    baseline = spec.build_from(copied).evaluate(copied[:2]).baseline
    assert baseline == ("a copy of the source", pytest.approx(0.0))


def test_a_model_that_has_learned_nothing_is_warned_about(tmp_path: Path) -> None:
    """A tiny learning rate leaves the initial weights unchanged."""
    torch.manual_seed(0)
    task = ClassificationSpec(model=ClassifierSpec(encoder=ENCODER)).build_from(LABELED)
    events = list[Any]()
    train = task.batches(InMemory(tuple(LABELED)), batch_size=4)
    spec = TrainingSpec(steps=1, learning_rate=1e-9)
    examples = [Example("a", "yes")] * 9 + [Example("a", "no")]
    assert isinstance(task.model, Classifier)
    with torch.no_grad():
        task.model.output.bias[:] = torch.tensor([9.0, 0.0])  # always "no"
    fit(task, train, examples, spec, tmp_path, listeners=[events.append])
    (warning,) = events[-1].warnings
    assert "dev: accuracy 10.00 is no better than 90.00" in warning
    found = json.loads((tmp_path / "metrics.json").read_text())["baselines"]
    assert found == {"dev": {"rule": "the most frequent label", "value": 90.0}}


def test_a_perfect_score_is_never_warned_about() -> None:
    task = ClassificationSpec(model=ClassifierSpec(encoder=ENCODER)).build_from(LABELED)
    (output,) = task.predict([Example("a")])
    right = task.evaluate([Example("a", output.output)])
    assert right.value == 100
    assert right.warning is None


def test_a_bundle_keeps_the_counts_and_an_old_one_has_none(tmp_path: Path) -> None:
    task = TaggingSpec(model=TaggerSpec(encoder=ENCODER)).build_from(TAGGED)
    save_bundle(task, tmp_path)
    assert load_bundle(tmp_path).vocabularies.majority == task.vocabularies.majority
    old = load_bundle(BUNDLES / "0.1.0" / "tagging")
    assert old.evaluate([Example("a cat", "DET NOUN")]).baseline is None


def test_tallies_of_parts_have_the_majority_of_the_whole() -> None:
    spec = TaggingSpec()
    parts = [Tally.of(map(spec.counted, TAGGED[:2])), Tally.of(map(spec.counted, TAGGED[2:]))]
    whole = Tally.of(map(spec.counted, TAGGED))
    merged = Tally.from_data(json.loads(json.dumps(parts[0].to_data())))
    merged.merge(parts[1])
    assert merged.vocabularies().majority == whole.vocabularies().majority

"""A run as a value, which a recipe returns."""

from dataclasses import replace
from pathlib import Path

import pytest

from foveal.bundles import load_bundle
from foveal.data import Example, InMemory, tsv
from foveal.errors import SpecError
from foveal.specs import from_json, to_json, with_setting
from foveal.training import Event, Finished, Run, StepDone, TrainingSpec, Warned, fit
from tests.training.toys import DEV, TRAIN, losses, transduction, weights_bytes

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path: Path) -> Run:
    for name, examples in (("train", TRAIN), ("dev", DEV), ("test", DEV[:10])):
        lines = "".join(f"{example.source}\t{example.target}\n" for example in examples)
        (tmp_path / f"{name}.tsv").write_text(lines, encoding="utf-8")
    return Run(
        task=transduction().spec,
        train=tsv(tmp_path / "train.tsv"),
        dev=tsv(tmp_path / "dev.tsv"),
        test=tsv(tmp_path / "test.tsv"),
        training=TrainingSpec(steps=10, batch_tokens=128, learning_rate=5e-3),
    )


def test_json_both_ways(run: Run) -> None:
    assert from_json(Run, to_json(run)) == run


def test_settings_have_paths(run: Run) -> None:
    changed = with_setting(run, "training.steps", "500")
    assert changed == replace(run, training=replace(run.training, steps=500))
    with pytest.raises(SpecError, match=r"Did you mean training\.learning_rate"):
        with_setting(run, "learning_rate", "1")


def test_a_run_leaves_a_bundle_and_itself(run: Run, tmp_path: Path) -> None:
    events: list[Event] = []
    outcome = run.fit(tmp_path / "out", listeners=[events.append])
    assert from_json(Run, (tmp_path / "out/run.json").read_text(encoding="utf-8")) == run
    (finished,) = [event for event in events if isinstance(event, Finished)]
    for name in ("wer", "cer"):
        assert finished.metrics[name] == outcome.metrics[name].value
        assert finished.test[name] == outcome.test[name].value
    task = load_bundle(tmp_path / "out")
    assert task.evaluate(DEV[:10]).value == outcome.test["wer"].value


def test_the_same_run_gives_the_same_weights_and_another_seed_others(
    run: Run, tmp_path: Path
) -> None:
    seeded = replace(run, training=replace(run.training, seed=2))
    for name, one in (("a", run), ("b", run), ("c", seeded)):
        one.fit(tmp_path / name)
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert weights_bytes(tmp_path / "a") == weights_bytes(tmp_path / "b")
    assert losses(tmp_path / "a")[0] != losses(tmp_path / "c")[0]


def test_batches_are_by_tokens_or_by_examples(run: Run, tmp_path: Path) -> None:
    def tokens(changed: Run, name: str) -> int:
        events: list[Event] = []
        changed.fit(tmp_path / name, listeners=[events.append])
        return max(event.tokens for event in events if isinstance(event, StepDone))

    assert tokens(run, "tokens") < 80  # at most 3 of 5 positions are target tokens
    by_size = replace(run, training=replace(run.training, batch_size=50))
    assert tokens(by_size, "examples") > 150


def test_examples_that_fit_in_no_batch_are_told_of(tmp_path: Path) -> None:
    task = transduction()
    examples = (*TRAIN, Example("a" * 100, "b" * 100))
    stream = task.batches(InMemory(examples), budget=128, seed=1)
    events: list[Event] = []
    spec = TrainingSpec(steps=20, batch_tokens=128)
    fit(task, stream, [], spec, tmp_path, listeners=[events.append])
    (warned,) = [event for event in events if isinstance(event, Warned)]
    assert warned.text.startswith("skipped 1 training examples")
    assert "Increase batch_tokens (128)" in warned.text


def test_a_run_without_files_for_validation(run: Run, tmp_path: Path) -> None:
    outcome = replace(run, dev=None, test=None).fit(tmp_path / "out")
    assert (outcome.metrics, outcome.test) == ({}, {})
    assert outcome.best_step == outcome.step == 10


def test_a_run_begins_with_a_bundle(run: Run, tmp_path: Path) -> None:
    replace(run, training=replace(run.training, steps=150)).fit(tmp_path / "first")
    begun = replace(run, start_from=str(tmp_path / "first"))
    for name, one in (("scratch", run), ("a", begun), ("b", begun)):
        one.fit(tmp_path / name)
    assert losses(tmp_path / "a")[0] < 0.7 * losses(tmp_path / "scratch")[0]
    assert weights_bytes(tmp_path / "a") == weights_bytes(tmp_path / "b")
    assert from_json(Run, (tmp_path / "a/run.json").read_text(encoding="utf-8")) == begun

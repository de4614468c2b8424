"""Scores are computed after the model is saved; full and failing disks lose no learned weights."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from foveal.bundles import load_bundle
from foveal.cli._main import main
from foveal.errors import CheckpointError
from foveal.training import Checkpointed, Event, Started, StepDone, TrainingSpec, Warned
from foveal.training.checkpoints._position import Position, num_affordable, reserved
from foveal.training.events._events import Scoring
from tests.full_disk import full_disk
from tests.training.toys import DEV, losses, reversals, train, weights_bytes

pytestmark = pytest.mark.slow

SPEC = TrainingSpec(steps=12, learning_rate=5e-3, checkpoint_seconds=0.0, log_every=1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_scoring_ends_it_and_the_model_is_there(
    tmp_path: Path, number: signal.Signals
) -> None:
    events: list[Event] = []

    def press(event: Event) -> None:
        events.append(event)
        if isinstance(event, Scoring):
            assert len(load_bundle(tmp_path).predict(DEV[:1])) == 1  # saved before scoring
            signal.raise_signal(number)

    outcome = train(tmp_path, SPEC, listeners=[press])
    assert not outcome.is_scored
    assert (outcome.reason, outcome.metrics) == ("length", {})
    assert "scoring was interrupted" in [e.text for e in events if isinstance(e, Warned)][-1]
    assert len(load_bundle(tmp_path).predict(DEV[:1])) == 1
    again = train(tmp_path, SPEC)  # training is already complete
    assert again.is_scored
    assert again.metrics


def test_minutes_are_kept_for_scoring() -> None:
    spec = TrainingSpec(minutes=10.0)
    at = Position(seconds=300.0, cost=0.01)
    assert reserved(spec, at, num_scored=1_000) == 30.0  # a beam costs three times as much
    assert reserved(spec, at, num_scored=1_000_000) == 150.0  # at most a quarter
    assert reserved(replace(spec, minutes=None, steps=5), at, num_scored=1_000) == 0.0
    assert num_affordable(spec, at, 1_000, 1_000) == 1_000
    assert num_affordable(spec, at, 10_000, 20_000) == 5_000
    assert num_affordable(spec, replace(at, seconds=700.0), 10_000, 20_000) == 100


def test_too_many_examples_for_the_minutes_are_sampled_and_told_of(tmp_path: Path) -> None:
    events: list[Event] = []
    spec = replace(SPEC, steps=None, minutes=0.02, checkpoint_seconds=1000.0)
    train(tmp_path, spec, dev=reversals(2_000, seed=1), listeners=[events.append])
    texts = [event.text for event in events if isinstance(event, Warned)]
    assert any("of 2,000 dev examples, because minutes=0.02" in text for text in texts)


def test_a_checkpoint_that_cannot_be_read_gives_way_to_the_older_one(tmp_path: Path) -> None:
    broken = tmp_path / "broken"

    def stop(event: Event) -> None:
        if isinstance(event, Checkpointed) and event.step == 8:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        train(broken, SPEC, listeners=[stop])
    spoil(broken, 8)
    resumed: list[Event] = []
    with pytest.raises(RuntimeError, match="stop"):
        train(broken, SPEC, listeners=[resumed.append, stop])
    assert isinstance(resumed[0], Started)
    assert resumed[0].step == 7
    (warned,) = [event.text for event in resumed if isinstance(event, Warned)]
    assert "step-000000008: cannot be read (Input/output error)" in warned
    spoil(broken, 8)
    spoil(broken, 7)
    with pytest.raises(CheckpointError, match="found none among 2"):
        train(broken, SPEC)


def spoil(out: Path, step: int) -> None:
    """Make reading a checkpoint raise an I/O error."""
    manifest = out / f"checkpoints/step-{step:09d}/manifest.json"
    manifest.unlink()
    manifest.symlink_to("/proc/self/mem")
    with pytest.raises(OSError, match="Input/output error"):
        manifest.read_bytes()


def test_a_disk_that_is_full_for_a_while_changes_no_weight(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(whole, SPEC)
    filling = full_disk()

    def fill(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 6:
            filling.__enter__()

    try:
        with pytest.raises(OSError, match="File too large"):
            train(broken, SPEC, listeners=[fill])
    finally:
        filling.__exit__(None, None, None)
    left = {path.name for path in (broken / "checkpoints").iterdir()}
    assert left == {"step-000000004", "step-000000005"}  # no partial checkpoint remains
    train(broken, SPEC)
    assert losses(broken) == losses(whole)
    assert weights_bytes(broken) == weights_bytes(whole)


def test_a_full_disk_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{example.source}\t{example.target}\n" for example in reversals(60)]
    Path("train.tsv").write_text("".join(rows), encoding="utf-8")
    options = ("--set", "training.epochs=none", "--set", "training.steps=2")
    with full_disk(), pytest.raises(SystemExit) as ended:
        main(["fit", "train.tsv", "--out", "run", *options])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the disk is full" in line
    assert "run the same command again" in line

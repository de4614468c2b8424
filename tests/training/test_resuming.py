"""A run that was killed and resumed has the losses and weights of an uninterrupted run."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from foveal.errors import CheckpointError
from foveal.tasks import LanguageModeling, Transduction
from foveal.training import Event, Outcome, StepDone, TrainingSpec, Warned
from tests.training.toys import (
    language_modeling,
    losses,
    train,
    transduction,
    weights_bytes,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SPEC = TrainingSpec(steps=20, learning_rate=5e-3, ema_decay=0.9, checkpoint_seconds=0.0)
WITHOUT = {"checkpoint_seconds": 1000.0}  # except for the last one


class CrashError(Exception):
    """The error that ends a run in these tests."""


def crash_at(step: int) -> list[Callable[[Event], None]]:
    def listener(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == step:
            raise CrashError

    return [listener]


def in_a_process(out: Path, *options: str) -> int:
    """Train the toy task in a separate process, and return its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.toys", str(out), "--steps", "30", *options],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=120,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def test_killed_in_the_middle_of_an_epoch_and_resumed_is_the_same_run(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert in_a_process(whole) == 0
    assert in_a_process(broken, "--die-at", "19") == -signal.SIGKILL
    assert not (broken / "weights.safetensors").exists()
    # An epoch has 13 batches: step 18, the last checkpoint, is in the middle of the second epoch.
    newest = sorted((broken / "checkpoints").iterdir())[-1]
    assert newest.name == "step-000000018"
    shutil.rmtree(newest)  # resume before a step that is in the log
    assert in_a_process(broken) == 0
    assert losses(broken) == losses(whole)
    assert len(losses(whole)) == 30
    assert weights_bytes(broken) == weights_bytes(whole)
    last = "checkpoints/step-000000030/last.safetensors"
    assert (broken / last).read_bytes() == (whole / last).read_bytes()


CHANGES = [
    {},
    {"accumulate": 3, "steps": 16, "warmup_steps": 7, "schedule": "cosine", "bf16": True},
    {"optimizer": "adam", "weight_decay": 0.1, "ema_decay": 0.0, "evaluate_every": 4},
]


@pytest.mark.parametrize("make", [transduction, language_modeling])
@pytest.mark.parametrize("change", CHANGES)
def test_after_a_crash_the_same_call_goes_on(
    make: Callable[[], Transduction | LanguageModeling], change: dict[str, Any], tmp_path: Path
) -> None:
    spec = replace(SPEC, **change)
    train(tmp_path / "whole", replace(spec, **WITHOUT), task=make())
    with pytest.raises(CrashError):
        train(tmp_path / "broken", spec, task=make(), listeners=crash_at(14))
    outcome = train(tmp_path / "broken", replace(spec, **WITHOUT), task=make())
    assert outcome.step == spec.steps
    assert losses(tmp_path / "broken") == losses(tmp_path / "whole")
    assert weights_bytes(tmp_path / "broken") == weights_bytes(tmp_path / "whole")


def test_the_best_of_both_parts_is_kept(tmp_path: Path) -> None:
    spec = replace(SPEC, steps=60, evaluate_every=2, learning_rate=5e-2, patience=2)
    whole = train(tmp_path / "whole", replace(spec, **WITHOUT))
    assert whole.reason == "patience"
    assert whole.best_step == whole.step - 4
    with pytest.raises(CrashError):
        train(tmp_path / "broken", spec, listeners=crash_at(whole.best_step + 2))
    broken = train(tmp_path / "broken", replace(spec, **WITHOUT))
    assert (broken.best_step, broken.metrics) == (whole.best_step, whole.metrics)


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    spec = replace(SPEC, **WITHOUT)
    first = train(tmp_path, spec)
    before = weights_bytes(tmp_path)
    steps: list[Event] = []
    again = train(tmp_path, spec, listeners=[steps.append])
    assert (again.step, again.metrics) == (first.step, first.metrics)
    assert not any(isinstance(event, StepDone) for event in steps)
    assert weights_bytes(tmp_path) == before


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path: Path) -> None:
    constant = replace(SPEC, schedule="constant", evaluate_every=10, **WITHOUT)
    train(tmp_path / "whole", constant)
    train(tmp_path / "parts", replace(constant, steps=12))
    train(tmp_path / "parts", constant)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_resume_false_starts_again(tmp_path: Path) -> None:
    train(tmp_path, replace(SPEC, steps=8))
    outcome = train(tmp_path, replace(SPEC, steps=5), resume=False)
    assert outcome.step == 5
    assert len(losses(tmp_path)) == 5
    assert [path.name for path in sorted((tmp_path / "checkpoints").iterdir())] == [
        "step-000000004",
        "step-000000005",
    ]


def torn(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def tampered(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with a whole run of 8 steps and one that crashed in step 6."""
    folder = tmp_path_factory.mktemp("crashed")
    train(folder / "whole", replace(SPEC, steps=8))
    with pytest.raises(CrashError):
        train(folder / "broken", replace(SPEC, steps=8), listeners=crash_at(6))
    return folder


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (torn, "last.safetensors"),
        (tampered, "best.safetensors"),
        (Path.unlink, "carried.safetensors"),
        (tampered, "state.json"),
        (torn, "manifest.json"),
        (Path.unlink, "manifest.json"),
    ],
)
def test_a_damaged_checkpoint_is_refused_and_the_one_before_used(
    damage: Callable[[Path], None], name: str, crashed: Path, tmp_path: Path
) -> None:
    shutil.copytree(crashed / "broken", tmp_path, dirs_exist_ok=True)
    damage(tmp_path / "checkpoints/step-000000005" / name)
    events: list[Event] = []
    spec = replace(SPEC, steps=8, **WITHOUT)
    train(tmp_path, spec, listeners=[events.append])
    (warned,) = [event for event in events if isinstance(event, Warned)]
    assert "step-000000005: " in warned.text
    assert name in warned.text
    assert "Resuming from step-000000004 instead" in warned.text
    assert losses(tmp_path) == losses(crashed / "whole")
    assert weights_bytes(tmp_path) == weights_bytes(crashed / "whole")


def test_without_a_whole_checkpoint_the_user_is_asked(tmp_path: Path) -> None:
    train(tmp_path, replace(SPEC, steps=5))
    for folder in (tmp_path / "checkpoints").iterdir():
        torn(folder / "last.safetensors")
    with pytest.raises(CheckpointError, match=r"found none among 2.*damaged.*delete"):
        train(tmp_path, replace(SPEC, steps=10))


def test_what_killed_writers_leave_is_cleared_away(tmp_path: Path) -> None:
    train(tmp_path, replace(SPEC, steps=5))
    leftover = tmp_path / "checkpoints/.step-000000006.123"
    leftover.mkdir()
    (leftover / "last.safetensors").write_bytes(b"half")
    train(tmp_path, replace(SPEC, steps=10))
    assert not leftover.exists()


def test_other_settings_are_another_run(tmp_path: Path) -> None:
    train(tmp_path, replace(SPEC, steps=5))
    with pytest.raises(
        CheckpointError, match=r"training\.learning_rate was 0\.005 and is 0\.1.*resume=False"
    ):
        train(tmp_path, replace(SPEC, learning_rate=0.1))
    with pytest.raises(
        CheckpointError, match=r"task\.model\.decoder\.dropout was 0\.3 and is 0\.1"
    ):
        train(tmp_path, SPEC, task=transduction(dropout=0.1))


def test_a_checkpoint_holds_tensors_and_json_only(tmp_path: Path) -> None:
    outcome: Outcome = train(tmp_path, replace(SPEC, steps=5))
    folder = outcome.folder / "checkpoints/step-000000005"
    assert {path.suffix for path in folder.iterdir()} == {".safetensors", ".json"}
    names = load_file(folder / "last.safetensors")
    assert {name.split(".")[0] for name in names} == {"weights", "optimizer", "mean"}


def test_ctrl_c_stops_after_the_step_and_the_same_call_goes_on(tmp_path: Path) -> None:
    def press(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 10:
            signal.raise_signal(signal.SIGINT)

    spec = replace(SPEC, **WITHOUT)
    train(tmp_path / "whole", spec)
    before = signal.getsignal(signal.SIGINT)
    first = train(tmp_path / "broken", spec, listeners=[press])
    assert signal.getsignal(signal.SIGINT) is before
    assert first.reason == "interrupted"
    assert 10 <= first.step < 20
    assert (tmp_path / "broken/weights.safetensors").exists()
    assert train(tmp_path / "broken", spec).reason == "length"
    assert losses(tmp_path / "broken") == losses(tmp_path / "whole")


def test_ctrl_c_twice_is_at_once(tmp_path: Path) -> None:
    def press(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 11:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, replace(SPEC, log_every=1, **WITHOUT), listeners=[press])

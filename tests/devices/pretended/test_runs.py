"""Runs on the device: the commands, the bundle, checkpoints that move between devices, and batches read ahead."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import foveal
from foveal.cli._main import main
from foveal.inspection import align, vital_signs
from foveal.training import Event, StepDone, TrainingSpec, fit
from tests.devices.pretend import pretending
from tests.training.toys import DEV, batches, language_modeling, losses, transduction

SPEC = TrainingSpec(
    steps=16, learning_rate=5e-3, ema_decay=0.9, checkpoint_seconds=0.0, log_every=1
)
STEPS = "--set=training.steps=4"


class KilledError(Exception):
    """The process ends here."""


def killed_at(number: int) -> Callable[[Event], None]:
    def listener(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == number:
            raise KilledError

    return listener


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plots take longer than the runs."""
    monkeypatch.setattr("foveal.training._outputs.draw_curves", lambda log, out: None)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    lines = [f"{example.text}\t{example.target}\n" for example in (*DEV, *DEV)]
    (tmp_path / "words.tsv").write_text("".join(lines))
    return tmp_path / "words.tsv"


def train(out: Path, device: str, *, make: Any = transduction, stop: int | None = None) -> None:
    """Train a toy without dropout, whose random numbers differ between devices."""
    task = make(0.0) if make is transduction else make()
    task.model.to(device)
    listeners = [] if stop is None else [killed_at(stop)]
    try:
        fit(task, batches(task), DEV[:4], SPEC, out, listeners=listeners, probes=(vital_signs,))
    except KilledError:
        assert stop is not None


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """The losses of the run on the CPU."""
    out = tmp_path_factory.mktemp("cpu")
    train(out, "cpu")
    return losses(out)


@pytest.mark.parametrize("before", ["cuda", "cpu"])
@pytest.mark.parametrize("after", ["cuda", "cpu"])
def test_a_run_resumes_on_any_device(
    before: str, after: str, expected: list[float], tmp_path: Path
) -> None:
    with pretending():
        train(tmp_path, before, stop=11)
        train(tmp_path, after)
    assert losses(tmp_path) == pytest.approx(expected, abs=2e-3)


def test_a_batch_that_was_read_ahead_is_read_again_after_resuming(tmp_path: Path) -> None:
    """Running text also carries a state, which is on the device."""
    with pretending():
        train(tmp_path / "whole", "cuda", make=language_modeling)
        train(tmp_path / "parts", "cuda", make=language_modeling, stop=7)
        train(tmp_path / "parts", "cuda", make=language_modeling)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")


def test_commands_run_on_the_device(
    words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    small = ["--set=encoder.hidden_size=8", "--set=decoder.hidden_size=8"]
    with pretending():
        main(["fit", str(words), "--out", str(run), STEPS, *small, "--device", "cuda"])
        assert "parameters on cuda:0" in capsys.readouterr().out
        main(["predict", str(run), str(words), "--engine", "torch"])
        there = capsys.readouterr().out
        main(["evaluate", str(run), str(words), "--device", "cuda:0"])
        main(["explain", str(run), "abc", "--device", "cuda", "--out", str(tmp_path / "page.html")])
        capsys.readouterr()
    main(["predict", str(run), str(words), "--engine", "torch", "--device", "cpu"])
    assert capsys.readouterr().out == there
    assert json.loads((run / "metrics.json").read_text())["device"] == "cuda:0"


def test_python_runs_on_the_device(tmp_path: Path) -> None:
    rows = [(example.text, example.target) for example in DEV]
    with pretending():
        task = foveal.fit(rows, out=tmp_path, steps=4, encoder__hidden_size=8, quiet=True)
        assert task.device.type == "cuda"
        assert foveal.load(tmp_path).device.type == "cpu"
        loaded = foveal.load(tmp_path, device="auto")
        assert loaded.device.type == "cuda"
        assert list(align(loaded, DEV[:2]))
        found = loaded.predict("abc")
    assert foveal.load(tmp_path).predict("abc").output == found.output

"""Commands print their progress, and warn early about runs that cannot succeed."""

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from foveal.cli._length import LengthNote
from foveal.planning import _signs
from foveal.planning._signs import waiting, working
from foveal.training import StepDone, Warned
from tests.cli.test_commands import foveal


def plain() -> Console:
    """A console that writes to a file, as in a pipe."""
    return Console(file=io.StringIO(), width=80)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_line_tells_a_pipe_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_signs, "_PATIENCE", 0.05)
    console = plain()
    with working(console, "reading"):
        time.sleep(0.5)
    assert printed(console) == "reading ...\n"


def test_no_line_for_what_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_signs, "_PATIENCE", 0.3)
    console = plain()
    with working(console, "reading"):
        pass
    with waiting(console, "counting") as first_word:
        first_word(Warned(step=0, text="the run has begun"))
        time.sleep(0.6)
    assert printed(console) == ""


def step(*, epoch: float, progress: float, seconds: float) -> StepDone:
    return StepDone(
        step=10, epoch=epoch, progress=progress, seconds=seconds,
        loss=1.0, tokens=1, norm=1.0, rate=0.1, parts={},
    )  # fmt: skip


def test_a_run_that_is_far_too_short_is_told_once() -> None:
    console = plain()
    note = LengthNote(console, epochs=20.0)
    note(step(epoch=0.01, progress=0.01, seconds=1.0))  # too early for a note
    assert printed(console) == ""
    note(step(epoch=0.06, progress=0.05, seconds=12.0))
    note(step(epoch=0.07, progress=0.06, seconds=14.0))
    assert printed(console) == (
        "note: --minutes is enough for 1.2 epochs; for this amount of data, 20 epochs are recommended, about "
        "67 minutes. The model will probably underfit: increase --minutes, or remove it.\n"
    )


def test_a_run_that_is_long_enough_has_no_note() -> None:
    console = plain()
    LengthNote(console, epochs=20.0)(step(epoch=1.0, progress=0.05, seconds=12.0))
    assert printed(console) == ""


def test_a_file_of_one_example_is_noted(tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("ab\tA B\n")
    done = foveal(
        *("fit", "one.tsv", "--dev", "one.tsv", "--out", "run", "--set", "training.steps=1"),
        *("--set", "training.epochs=none"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "note: train: 1 example. A useful model needs some hundreds; add more data." in done.stdout
    )

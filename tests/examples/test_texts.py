"""Texts are found, truncated and split as the examples describe."""

import gzip
from pathlib import Path

import pytest
import torch
from torch import nn

from examples.support.texts import Descent, read_lines


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOVEAL_DATA", str(tmp_path))
    return tmp_path


def test_lines_of_a_file(data: Path) -> None:
    (data / "text.gz").write_bytes(gzip.compress(b"one\n\nthree\n"))
    assert read_lines("text.gz", cut=None) == ["one", "", "three"]
    assert read_lines("text.gz", cut=1) == ["one"]


def test_without_the_file_the_program_ends_well(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        read_lines("text.gz", cut=None)
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"skipped: data not found at {data}")


def test_a_descent_goes_down() -> None:
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    descent = Descent(model, learning_rate=0.1, num_steps=50)
    losses = [descent.step(model(torch.ones(1)).pow(2).sum()) for _ in range(50)]
    assert losses[-1] < losses[0] / 10

"""float16 and bfloat16 on the device: the loss scale, skipped steps, resuming, and runs that never stop overflowing."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from foveal.errors import NonFiniteError, SpecError
from foveal.training import TrainingSpec, fit, read_log
from foveal.training._precision import Precision
from tests.devices.pretend import CUDA, pretending
from tests.training.toys import batches, losses, transduction, weights_bytes

SPEC = TrainingSpec(
    steps=6, learning_rate=5e-3, schedule="constant", fp16=True, log_every=1, checkpoint_seconds=0.0
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveal.training._outputs.draw_curves", lambda log, out: None)
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation
    )


def train(out: Path, spec: TrainingSpec) -> list[float]:
    with pretending():
        task = transduction(0.0)
        task.model.to("cuda")
        fit(task, batches(task), [], spec, out)
    return losses(out)


def test_half_precision_learns_nearly_as_float32_does(tmp_path: Path) -> None:
    full = train(tmp_path / "full", replace(SPEC, fp16=False))
    half = train(tmp_path / "half", SPEC)
    brain = train(tmp_path / "brain", replace(SPEC, fp16=False, bf16=True))
    assert half == pytest.approx(full, rel=0.02)
    assert brain == pytest.approx(full, rel=0.02)
    assert full != half != brain
    log = read_log(tmp_path / "brain" / "log.jsonl")
    (said,) = [line["text"] for line in log if line["event"] == "warned"]
    assert "bf16=true, but cuda:0 has no bfloat16 instructions" in said


def test_a_resumed_run_has_the_same_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _overflow(monkeypatch, {2, 8})  # the second step of each of two runs
    whole = train(tmp_path / "whole", SPEC)
    train(tmp_path / "parts", replace(SPEC, steps=3))
    assert train(tmp_path / "parts", SPEC) == whole
    assert weights_bytes(tmp_path / "parts") == weights_bytes(tmp_path / "whole")


def test_a_step_that_overflows_is_skipped_and_halves_the_scale() -> None:
    with pretending():
        model = nn.Linear(2, 1).to("cuda")
        before = model.weight.detach().clone()
        precision = Precision(SPEC, CUDA)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
        for factor, moves in ((torch.inf, False), (1.0, True)):
            optimizer.zero_grad()
            precision.scaled(model(torch.ones(1, 2, device=CUDA)).sum() * factor).backward()
            precision.unscale(optimizer)
            precision.update(optimizer)
            assert bool((model.weight != before).all()) == moves
        assert precision.tensors()["scale"].item() == 2.0**9
        other = Precision(SPEC, CUDA)
        other.load(precision.tensors())
        other.scaled(torch.ones((), device=CUDA))
        assert other.tensors() == precision.tensors()


def test_a_skipped_step_is_logged_with_norm_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _overflow(monkeypatch, {3})
    train(tmp_path, SPEC)
    steps = [line for line in read_log(tmp_path / "log.jsonl") if line["event"] == "step_done"]
    assert [line["step"] for line in steps if line["norm"] == 0] == [3]


def test_endless_overflows_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _overflow(monkeypatch, set(range(100)))
    with pytest.raises(NonFiniteError, match="gradient norm"):
        train(tmp_path, replace(SPEC, steps=45, checkpoint_seconds=1e9, log_every=45))


def _overflow(monkeypatch: pytest.MonkeyPatch, calls: set[int]) -> None:
    """Make the gradient of these steps infinite."""
    number, scaled = 0, Precision.scaled

    def overflowing(precision: Precision, total: Tensor) -> Tensor:
        nonlocal number
        number += 1
        return scaled(precision, total) * (torch.inf if number in calls else 1.0)

    monkeypatch.setattr(Precision, "scaled", overflowing)


def test_impossible_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="at most one of bf16 and fp16"):
        train(tmp_path, replace(SPEC, bf16=True))
    with pytest.raises(SpecError, match="fp16 needs a GPU, got the device cpu"):
        fit(transduction(), batches(transduction()), [], SPEC, tmp_path / "cpu")

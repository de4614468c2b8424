"""Bundles with weights in float16 compute like a model with rounded weights."""

from pathlib import Path

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.errors import ValueRangeError
from tests.tasks.tiny import transduction


def test_weights_are_rounded_once(tmp_path: Path) -> None:
    task = transduction()
    save_bundle(task, tmp_path / "whole")
    save_bundle(task, tmp_path / "half", half=True)
    sizes = [(tmp_path / name / "weights.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.7 * sizes[1]
    loaded = load_bundle(tmp_path / "half")
    for name, tensor in loaded.model.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, task.model.state_dict()[name].half().float())
    save_bundle(loaded, tmp_path / "again", half=True)
    files = [tmp_path / name / "weights.safetensors" for name in ("half", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_too_large_weights_are_refused(tmp_path: Path) -> None:
    task = transduction()
    next(task.model.parameters()).data.fill_(1e5)
    with pytest.raises(
        ValueRangeError, match=r"have magnitudes up to 100000, expected at most 65504"
    ):
        save_bundle(task, tmp_path, half=True)

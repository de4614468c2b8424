"""The checks of this folder fail on a planted mistake of each kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from foveal.attention import AdditiveScorer
from foveal.decoding._beams import Beams
from tests.devices.pretend import WrongDeviceError, pretending
from tests.devices.pretended import test_tasks

MISTAKES: dict[str, Callable[[Tensor], Any]] = {
    "sum": lambda x: x + torch.ones(3),
    "condition": lambda x: torch.where(torch.ones(3) > 0, x, 0.0),
    "index": lambda x: x.gather(0, torch.tensor([1])),
    "concatenation": lambda x: torch.cat([x, torch.ones(3)]),
    "values": lambda x: torch.ones(3)[torch.arange(3, device=x.device)],
    "generator": lambda x: x.new_empty(3).uniform_(generator=torch.Generator()),
    "embedding": lambda x: nn.functional.embedding(torch.tensor([0]), x.unsqueeze(0)),
    "in place": lambda x: torch.ones(3).add_(x),
}
WAITS: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "bool": lambda x: bool(x.any()),
    "int": lambda x: int(x.sum()),
    "cpu": lambda x: x.cpu(),
    "numpy": lambda x: x.cpu().numpy(),
    "nonzero": lambda x: x.nonzero(),
    "mask as index": lambda x: x[x > 0],
    "assignment by a mask": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
    "equal": lambda x: torch.equal(x, x + 1),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_tensor_on_the_wrong_device_is_found(name: str) -> None:
    with pretending(), pytest.raises(WrongDeviceError):
        MISTAKES[name](torch.ones(3, device="cuda"))


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_is_counted(name: str) -> None:
    with pretending() as device:
        values = torch.ones(3, device="cuda")
        (values * 2).sum()
        assert not device.waits
        WAITS[name](values)
        assert device.waits.total() == 1
        assert all("test_planted" in line for line in device.waits)


def test_operations_that_a_gpu_allows_are_allowed() -> None:
    with pretending():
        values = torch.ones(3, device="cuda")
        assert (values + torch.tensor(2.0)).device.type == "cuda"
        assert values[torch.tensor([0, 1])].device.type == "cuda"
        assert values.copy_(torch.zeros(3)).device.type == "cuda"


def test_a_tensor_without_a_device_fails_the_test_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = AdditiveScorer.forward

    def planted(scorer: Any, *args: Any) -> Any:
        (scores,) = forward(scorer, *args)
        return (scores + torch.zeros(scores.shape),)  # on the CPU

    monkeypatch.setattr(AdditiveScorer, "forward", planted)
    with pytest.raises(WrongDeviceError):
        test_tasks.test_a_step_is_the_same_as_on_the_cpu("softmax", tmp_path)


def test_two_waits_in_a_training_step_fail_the_test_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = AdditiveScorer.forward

    def planted(scorer: Any, *args: Any) -> Any:
        (scores,) = forward(scorer, *args)
        assert scores.detach().isfinite().all().item()
        assert bool((scores.detach() < 1e9).all())
        return (scores,)

    monkeypatch.setattr(AdditiveScorer, "forward", planted)
    with pytest.raises(AssertionError, match=r"test_planted\.py"):
        test_tasks.test_a_step_is_the_same_as_on_the_cpu("softmax", tmp_path)


def test_another_wait_in_a_search_step_fails_the_test_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_on = Beams._continue

    def planted(beams: Beams, step: int, scores: Tensor, log_probs: Tensor) -> Any:
        assert not scores.isnan().any().item()
        return keep_on(beams, step, scores, log_probs)

    monkeypatch.setattr(Beams, "_continue", planted)
    with pytest.raises(AssertionError):
        test_tasks.test_answers_are_the_same_as_on_the_cpu("softmax", tmp_path, monkeypatch)

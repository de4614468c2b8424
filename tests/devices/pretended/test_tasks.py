"""Every task trains and answers on the device as it does on the CPU, and seldom waits for the device."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.data import InMemory
from foveal.data._batches import move
from foveal.tasks.base._speaking import Speaking
from foveal.training import TrainingSpec
from foveal.training._engine import Engine
from foveal.training._gradients import Reduced
from foveal.training._group import Group
from tests.devices.made import EVERY, Made, with_seed
from tests.devices.pretend import OnDevice, Pretended, pretending

SPEC = TrainingSpec(steps=5, ema_decay=0.9)
STEPS = (1, 2)
MOST_WAITS = 1  # of a training step and of a search step


def batches_of(made: Made) -> list[Any]:
    stream = made.task.batches(InMemory(tuple(made.examples)), batch_size=6, seed=1).forever()
    return [next(stream) for _ in STEPS]


def trained(
    made: Made, batches: list[Any], device: Pretended | None = None
) -> list[tuple[Reduced, Counter[str]]]:
    """Make training steps, and return the result and the waits of each."""
    engine = Engine(made.task.model, SPEC, Group(0, 1), 0)
    made.task.model.train()
    state, found = None, []
    for number, batch in zip(STEPS, batches, strict=True):
        if device is not None:
            device.waits.clear()
        reduced, state = engine.step(
            made.task.loss, [batch], state, number=number, rate=1e-2, signals=()
        )
        found.append((reduced, Counter() if device is None else Counter(device.waits)))
    return found


@pytest.mark.parametrize("name", EVERY)
def test_a_step_is_the_same_as_on_the_cpu(name: str, tmp_path: Path) -> None:
    here, there = (with_seed(EVERY[name], tmp_path / place) for place in ("here", "there"))
    batches = batches_of(here)
    expected = trained(here, batches)
    parameters = dict(here.task.model.named_parameters())
    with pretending() as device:
        there.task.model.to("cuda")
        found = trained(there, [move(batch, "cuda") for batch in batches], device)
        for (got, waits), (want, _) in zip(found, expected, strict=True):
            assert waits.total() <= MOST_WAITS, waits
            for one, other in ((got.total, want.total), (got.norm, want.norm)):
                assert isinstance(one, OnDevice)
                torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-4)
        for path, parameter in there.task.model.named_parameters():
            assert isinstance(parameter.grad, OnDevice), path
            # The first steps of Adam have the size of the rate, whatever the rounding of the gradient.
            torch.testing.assert_close(
                parameter.detach().cpu(), parameters[path].detach(), rtol=0, atol=4e-2
            )


@pytest.mark.parametrize("name", EVERY)
def test_answers_are_the_same_as_on_the_cpu(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_seed(EVERY[name], tmp_path)
    task, examples = made.task, made.examples[:5]
    expected = task.predict(examples)
    with pretending() as device:
        task.model.to("cuda")
        found = task.predict(examples)
        task.evaluate(examples[:1])
        at = _waits_before_steps(device, monkeypatch)
        task.predict(examples[:1])
    assert [one.output for one in found] == [one.output for one in expected]
    scores = [one.score for one in found], [one.score for one in expected]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert max((after - before for before, after in pairwise(at)), default=0) <= MOST_WAITS


def _waits_before_steps(device: Pretended, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of waits before each step of a search."""
    at, step = list[int](), Speaking.step

    def counted(*args: Any, **options: Any) -> Any:
        at.append(device.waits.total())
        return step(*args, **options)

    monkeypatch.setattr(Speaking, "step", counted)
    return at

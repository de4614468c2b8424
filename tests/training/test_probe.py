"""Probes run rarely enough, reach all listeners, and do not affect the run."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.inspection import vital_signs
from foveal.training import (
    Event,
    StepDone,
    TensorBoardWriter,
    TrainingSpec,
    Warned,
    _loop,
    fit,
    read_log,
)
from foveal.training.events._events import Probed
from foveal.training.events._probe import SHARE, Probing, Readings
from tests.training.toys import (
    DEV,
    batches,
    language_modeling,
    losses,
    transduction,
    weights_bytes,
)

pytestmark = pytest.mark.slow

SPEC = TrainingSpec(
    steps=24, learning_rate=5e-3, ema_decay=0.9, checkpoint_seconds=1000.0, log_every=4
)


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Eager:
    """Probes that are always due."""

    def __init__(self, probes: Any) -> None:
        self._inner = Probing(probes)

    def begin(self, step: int) -> None:
        self._inner.begin(step)

    def due(self, step: int) -> bool:
        return step > 0

    def read(self, task: Any, batch: Any) -> tuple[Readings, float]:
        return self._inner.read(task, batch)


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_loop, "Probing", Eager)


@pytest.mark.parametrize("cost", [0.1, 3.0, 20.0])
@pytest.mark.parametrize("jitter", [0.0, 0.5])
def test_probes_take_at_most_their_share_whatever_they_cost(cost: float, jitter: float) -> None:
    task, clock, spent, times = transduction(), Clock(), 0.0, list[float]()

    def probe(task: Any, batch: Any) -> Readings:
        del task, batch
        nonlocal spent
        seconds = cost * (1 + jitter * (len(times) % 2))
        clock.now += seconds
        spent += seconds
        times.append(clock.now)
        return {}

    probing = Probing([probe], clock)
    clock.now += 100.0  # time before the run is not counted
    probing.begin(0)
    began = clock.now
    for step in range(1, 40_001):
        clock.now += 1.0
        if probing.due(step):
            probing.read(task, None)
    assert times
    share = spent / (clock.now - began)
    assert share < 1.5 * SHARE < 0.03 + 1e-9
    if cost >= 1:
        assert share > SHARE / 2  # and probes do run
    gaps = [after - before for before, after in pairwise(times)]
    assert all(gap >= cost / SHARE for gap in gaps)  # evenly spaced


def test_the_first_probe_waits_until_a_guess_of_its_cost_fits() -> None:
    clock = Clock()
    probing = Probing([lambda task, batch: {}], clock)
    probing.begin(50)
    due = []
    for step in range(51, 400):
        clock.now += 0.5
        due.append(probing.due(step))
    assert due.index(True) == 199  # four steps are 1/50 of two hundred


def test_without_probes_nothing_is_ever_due() -> None:
    clock = Clock()
    probing = Probing((), clock)
    clock.now = 1e9
    assert not probing.due(10**6)


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize("make", [transduction, language_modeling])
def test_a_run_with_probes_is_the_run_without_to_the_bit(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    def run(name: str, probes: Any) -> list[Event]:
        events: list[Event] = []
        task = make()
        out = tmp_path / name
        fit(task, batches(task), DEV, SPEC, out, listeners=[events.append], probes=probes)
        return events

    def draws(task: Any, batch: Any) -> Readings:
        return {"drawn": float(torch.rand(()))} if task.loss(batch).total > 0 else {}

    run("without", ())
    events = run("with", (vital_signs, draws))
    assert losses(tmp_path / "with") == losses(tmp_path / "without")
    assert weights_bytes(tmp_path / "with") == weights_bytes(tmp_path / "without")
    probed = [event for event in events if isinstance(event, Probed)]
    assert [event.step for event in probed] == [4, 8, 12, 16, 20, 24]
    assert all("drawn" in event.readings and "loss" in event.readings for event in probed)
    logged = [line for line in read_log(tmp_path / "with/log.jsonl") if line["event"] == "probed"]
    assert [line["readings"] for line in logged] == [dict(event.readings) for event in probed]
    latest = 0
    for event in events:
        if isinstance(event, StepDone):
            latest = event.step
        elif isinstance(event, Probed):
            assert event.step == latest


@pytest.mark.usefixtures("_eager")
def test_a_run_goes_on_with_probes_as_it_would_without(tmp_path: Path) -> None:
    spec = replace(SPEC, checkpoint_seconds=0.0)
    task = transduction()
    fit(task, batches(task), DEV, spec, tmp_path / "whole")

    def stop(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 12:
            raise KeyboardInterrupt

    for listeners in ([stop], []):
        task = transduction()
        try:
            fit(
                task,
                batches(task),
                DEV,
                spec,
                tmp_path / "resumed",
                listeners=listeners,
                probes=[vital_signs],
            )
        except KeyboardInterrupt:
            continue
    assert losses(tmp_path / "resumed") == losses(tmp_path / "whole")
    assert weights_bytes(tmp_path / "resumed") == weights_bytes(tmp_path / "whole")


@pytest.mark.usefixtures("_eager")
def test_a_probe_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    events: list[Event] = []
    task = transduction()

    def broken(task: Any, batch: Any) -> Readings:
        del task, batch
        raise RuntimeError("no pulse")

    fit(task, batches(task), DEV, SPEC, tmp_path, listeners=[events.append], probes=[broken])
    warned = [event.text for event in events if isinstance(event, Warned)]
    assert ["no pulse" in text for text in warned] == [True]
    assert [event.step for event in events if isinstance(event, StepDone)][-1] == SPEC.steps


@pytest.mark.usefixtures("_eager")
def test_readings_go_to_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    written: list[tuple[str, float, int]] = []
    writer = TensorBoardWriter(tmp_path / "board")

    class Kept:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            del args, kwargs

        def add_scalar(self, *row: Any) -> None:
            written.append(row)

        def add_text(self, *row: Any) -> None:
            del row

        def close(self) -> None:
            pass

    writer._summary_writer = Kept
    task = transduction()
    spec = replace(SPEC, steps=4)
    fit(task, batches(task), [], spec, tmp_path, listeners=[writer], probes=[vital_signs])
    names = {name for name, _, _ in written}
    assert "probe/attention/entropy" in names
    assert "probe/gradient_norms/decoder" not in names

"""The number of threads of a run: given, measured, or kept from the run that is resumed."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.bundles import load_bundle
from foveal.cli._main import main
from foveal.data import InMemory
from foveal.models import TaggerSpec
from foveal.tasks import Tagging, TaggingSpec
from foveal.training import TrainingSpec, fit
from foveal.training._threads import choose_threads
from foveal.training.events._events import ThreadsChosen
from tests.tasks.tiny import ENCODER, sentences

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def tagging() -> Tagging:
    torch.manual_seed(0)
    return TaggingSpec(model=TaggerSpec(encoder=ENCODER)).build_from(sentences(20))


def trained(folder: Path, steps: int, *, threads: int | None = None, measure: bool = True) -> Any:
    """Train, and return the outcome and the events about threads."""
    task, chosen = tagging(), list[ThreadsChosen]()
    outcome = fit(
        task,
        task.batches(InMemory(tuple(sentences(20))), batch_size=5),
        sentences(5),
        TrainingSpec(steps=steps, threads=threads, checkpoint_seconds=0.0),
        folder,
        listeners=[
            lambda event: chosen.append(event) if isinstance(event, ThreadsChosen) else None
        ],
        measure_threads=measure,
    )
    return outcome, chosen, task.model.state_dict()


@pytest.mark.parametrize("slow", [1, 2])
def test_the_faster_number_is_chosen(slow: int) -> None:
    def step() -> None:
        time.sleep(0.02 if torch.get_num_threads() == slow else 0.001)

    chosen = choose_threads(step)
    assert chosen.number == 3 - slow
    assert "with 1 thread and" in chosen.reason
    assert torch.get_num_threads() == 2


def test_a_measured_number_is_told_recorded_and_kept_by_a_resumed_run(tmp_path: Path) -> None:
    outcome, chosen, _ = trained(tmp_path, 3)
    (event,) = chosen
    assert event.threads == outcome.threads
    assert json.loads((tmp_path / "metrics.json").read_text())["threads"] == outcome.threads
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["threads"] for line in logged if line["event"] == "threads_chosen"] == [
        event.threads
    ]
    assert torch.get_num_threads() == 2
    again, chosen, _ = trained(tmp_path, 6)
    assert (again.threads, chosen) == (outcome.threads, [])


def test_a_number_that_was_given_is_not_measured(tmp_path: Path) -> None:
    outcome, chosen, _ = trained(tmp_path, 2, threads=1)
    assert (outcome.threads, chosen) == (1, [])


def test_a_measurement_changes_no_weight(tmp_path: Path) -> None:
    measured, _, weights = trained(tmp_path / "measured", 4)
    _, chosen, others = trained(tmp_path / "given", 4, threads=measured.threads, measure=False)
    assert chosen == []
    assert all(torch.equal(weights[name], others[name]) for name in weights)


def test_the_switch_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "train.tsv", tmp_path / "run"
    file.write_text("".join(f"{e.source}\t{e.target}\n" for e in sentences(40)))
    main(["fit", str(file), "--out", str(out), "--threads", "1", "--set", "training.epochs=1"])
    assert json.loads((out / "metrics.json").read_text())["threads"] == 1
    assert json.loads((out / "run.json").read_text())["training"]["threads"] == 1
    torch.set_num_threads(2)
    main(["evaluate", str(out), str(file), "--threads", "1"])
    assert torch.get_num_threads() == 1
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["predict", str(out), str(file), "--threads", "0"])
    assert "--threads must be at least 1, got 0" in capsys.readouterr().err
    assert load_bundle(out).spec.spelling is not None

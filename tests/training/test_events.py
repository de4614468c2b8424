"""The reports of a run: events, the log, the display, TensorBoard, curves, and failures."""

import io
import json
import platform
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from foveal.data import tsv
from foveal.errors import MissingPackageError, NonFiniteError
from foveal.tasks import Transduction
from foveal.tasks.base._prediction import Loss
from foveal.training import (
    Checkpointed,
    Display,
    Evaluated,
    Event,
    Failed,
    Finished,
    Improved,
    LogWriter,
    Started,
    StepDone,
    Stopped,
    TensorBoardWriter,
    TrainingSpec,
    Warned,
    fit,
    read_log,
)
from foveal.training.events._curves import draw_curves
from foveal.training.events._events import Answer, Scoring
from tests.training.toys import DEV, TRAIN, batches, train, transduction

pytestmark = pytest.mark.slow

SPEC = TrainingSpec(steps=12, learning_rate=5e-3, evaluate_every=5, checkpoint_seconds=1000.0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    """Return the folder and the events of a run."""
    folder = tmp_path_factory.mktemp("finished")
    events: list[Event] = []
    train(folder, SPEC, listeners=[events.append])
    return folder, events


def test_the_events_of_a_run(finished: tuple[Path, list[Event]]) -> None:
    _, events = finished
    assert isinstance(events[0], Started)
    assert (events[0].step, events[0].processes) == (0, 1)
    assert (events[0].metric, events[0].higher_is_better) == ("wer", False)
    assert events[0].parameters == sum(p.numel() for p in transduction().model.parameters())
    assert isinstance(events[-1], Finished)
    assert events[-2] == Scoring(step=12, name="dev", done=0, total=len(DEV))
    assert isinstance(events[-3], Stopped)
    steps = [event.step for event in events if isinstance(event, StepDone)]
    assert steps == list(range(1, 13))
    evaluated = [event for event in events if isinstance(event, Evaluated)]
    assert [event.step for event in evaluated] == [5, 10, 12]
    assert all(set(event.metrics) == {"wer", "cer"} for event in evaluated)
    sources = {example.source for example in DEV}
    assert all(answer.source in sources for event in evaluated for answer in event.samples)
    kinds = [type(event) for event in events]
    assert kinds.index(Improved) == kinds.index(Evaluated) + 1
    assert kinds.count(Checkpointed) == 1
    assert Failed not in kinds


@pytest.mark.parametrize("bf16", [False, True])
def test_bfloat16_that_only_slows_down_is_warned_of(bf16: bool, tmp_path: Path) -> None:
    events: list[Event] = []
    train(tmp_path, replace(SPEC, steps=1, bf16=bf16), listeners=[events.append])
    warned = [event.text for event in events if isinstance(event, Warned)]
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    is_fast = platform.machine() != "x86_64" or "avx512_bf16" in flags or "amx_bf16" in flags
    assert len(warned) == int(bf16 and not is_fast)
    assert all("bf16" in text for text in warned)


def test_no_step_is_told_before_it_is_finite_and_none_after_a_score(
    finished: tuple[Path, list[Event]],
) -> None:
    _, events = finished
    latest = 0
    for event in events:
        if isinstance(event, StepDone):
            latest = event.step
        elif not isinstance(event, Started):
            assert event.step == latest  # its steps were reported before


def test_the_log_has_every_event(finished: tuple[Path, list[Event]]) -> None:
    folder, events = finished
    lines = list(read_log(folder / "log.jsonl"))
    assert len(lines) == len(events)
    done = [event for event in events if isinstance(event, StepDone)]
    logged = [line for line in lines if line["event"] == "step_done"]
    for line, event in zip(logged, done, strict=True):
        assert {name: line[name] for name in vars(event)} == vars(event)


def test_a_line_that_was_cut_off_is_passed_over_and_then_gone(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    line = {"event": "warned", "step": 3, "text": "a"}
    path.write_text(f'{json.dumps(line)}\n{{"event": "warned", "st', encoding="utf-8")
    assert list(read_log(path)) == [line]
    writer = LogWriter(path)
    start = Started(step=3, processes=1, parameters=1, metric="wer", higher_is_better=False)
    writer(start)
    writer(Failed(step=3, text="b"))
    assert [entry["event"] for entry in read_log(path)] == ["warned", "started", "failed"]


def test_the_folder_of_a_run(finished: tuple[Path, list[Event]]) -> None:
    folder, events = finished
    last = events[-1]
    assert isinstance(last, Finished)
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["dev"]["wer"]["value"] == last.metrics["wer"]
    assert metrics["dev"]["wer"]["low"] <= last.metrics["wer"] <= metrics["dev"]["wer"]["high"]
    assert (metrics["stopped"], metrics["step"]) == ("length", 12)
    rows = (folder / "samples.tsv").read_text(encoding="utf-8").splitlines()
    assert rows[0].split("\t") == ["source", "expected", "output", "score", "confidence"]
    assert [row.split("\t")[:2] for row in rows[1:]] == [[e.source, e.target] for e in DEV]


def test_curves_are_svg_and_the_same_for_the_same_log(
    finished: tuple[Path, list[Event]], tmp_path: Path
) -> None:
    folder, _ = finished
    drawn = (folder / "curves.svg").read_bytes()
    root = ET.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"training loss", "learning rate", "gradient norm"} <= texts
    titles = {element.text for element in root.iter("{http://www.w3.org/2000/svg}title")}
    assert "Validation, free-running: wer" in titles
    draw_curves(folder / "log.jsonl", tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == drawn


def test_curves_of_a_long_run_are_thinned(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with log.open("w", encoding="utf-8") as file:
        for step in range(1, 50_001):
            line = {"event": "step_done", "step": step, "loss": 1.0, "rate": 1.0, "norm": 1.0}
            file.write(json.dumps(line) + "\n")
    draw_curves(log, tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").stat().st_size < 300_000


# the display


def shown(events: list[Event], *, terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200, highlight=False)
    display = Display(console)
    for event in events:
        display(event)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_the_display_shows_a_run(finished: tuple[Path, list[Event]], terminal: bool) -> None:
    text = shown(finished[1], terminal=terminal)
    for words in ("parameters", "loss", "epoch 0.", "validation after step 10", "wer", "finished"):
        assert words in text
    assert DEV[0].text in text
    assert ("\x1b" in text) == terminal  # bars and colors in a terminal only


def test_a_terminal_shows_speed_and_time_left(finished: tuple[Path, list[Event]]) -> None:
    text = shown(finished[1], terminal=True)
    assert "tokens/s, data wait " in text
    assert "left" in text


def test_a_narrow_terminal_keeps_the_time_left(finished: tuple[Path, list[Event]]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)
    display = Display(console)
    steps = [event for event in finished[1] if isinstance(event, StepDone)]
    display(finished[1][0])
    for step in steps:
        display(replace(step, step=1_234_567, epoch=123.4))
    display(Failed(step=3, text="over"))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    (line,) = [line for line in lines if "step 1,234,567" in line][-1:]
    assert " left" in line
    assert "…" not in line


def test_the_speed_counts_what_is_read_and_not_labels(finished: tuple[Path, list[Event]]) -> None:
    steps = [event for event in finished[1] if isinstance(event, StepDone)]
    assert all(step.inputs > step.tokens for step in steps)  # source tokens count too
    seconds = [replace(step, inputs=600, seconds=2.0 * step.step) for step in steps]
    assert "300 tokens/s" in shown([finished[1][0], *seconds], terminal=False)


@pytest.mark.parametrize("terminal", [False, True])
def test_samples_are_shown_a_few_times_and_shortened(
    finished: tuple[Path, list[Event]], terminal: bool
) -> None:
    start, step = finished[1][0], next(e for e in finished[1] if isinstance(e, StepDone))
    answer = Answer("one [b] sentence. " + "and more. " * 100, "yes", "no")
    events = [start]
    for number in range(1, 101):
        events.append(replace(step, step=number, progress=number / 100))
        metrics = {"wer": 50.0}
        events.append(
            Evaluated(step=number, metrics=metrics, samples=(answer,), seconds=1.0, share=0.1)
        )
    text = shown(events, terminal=terminal)
    assert 1 < text.count("one [b] sentence.") <= 4
    assert text.count("validation after step") == 100
    assert "and more. " * 10 not in text


def test_the_wait_for_data_is_a_share_of_each_step(finished: tuple[Path, list[Event]]) -> None:
    steps = [event for event in finished[1] if isinstance(event, StepDone)]
    for before, step in pairwise(steps):
        assert 0 < step.wait < step.seconds - before.seconds
    slow = [replace(step, wait=10.0, seconds=20.0 * step.step) for step in steps]
    assert "data wait 50%" in shown([finished[1][0], *slow], terminal=False)


def test_markup_in_texts_is_shown_as_it_is() -> None:
    text = shown([Warned(step=1, text="[bold]x[/bold]")], terminal=False)
    assert "[bold]x[/bold]" in text


def test_an_error_closes_the_bar(finished: tuple[Path, list[Event]]) -> None:
    start = finished[1][0]
    text = shown([start, Failed(step=3, text="the loss is nan")], terminal=True)
    assert "failed: the loss is nan" in text
    assert text.rindex("\x1b[?25h") > text.index("\x1b[?25l")  # the cursor is visible again


# TensorBoard


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    module = import_module("tensorboard.backend.event_processing.event_accumulator")
    found = module.EventAccumulator(str(folder))
    found.Reload()
    return {
        tag: [(event.step, event.value) for event in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from TensorBoard's reader
def test_tensorboard_gets_every_number(finished: tuple[Path, list[Event]], tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path)
    for event in finished[1]:
        writer(event)
    found = scalars(tmp_path)
    assert set(found) == {
        "training/loss",
        "training/gradient_norm",
        "training/learning_rate",
        "validation/wer",
        "validation/cer",
    }
    losses = [(event.step, event.loss) for event in finished[1] if isinstance(event, StepDone)]
    assert [step for step, _ in found["training/loss"]] == [step for step, _ in losses]
    assert [v for _, v in found["training/loss"]] == pytest.approx([v for _, v in losses])


def test_without_tensorboard_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingPackageError, match=r"pip install '\.\[tensorboard\]'"):
        TensorBoardWriter(tmp_path)


# failures


class Bad:
    """Replace `Transduction.loss`, and change the loss of one call."""

    def __init__(self, task: Transduction, call: int, kind: str) -> None:
        self.task, self.call, self.kind, self.calls = task, call, kind, 0

    def __call__(self, batch: Any, state: Any = None) -> Loss:
        loss = Transduction.loss(self.task, batch, state)
        self.calls += 1
        if self.calls != self.call:
            return loss
        weight = next(self.task.model.parameters())
        harm = {
            "nan": weight.sum() * torch.nan,
            "inf": weight.sum() * 0 + torch.inf,
            "gradient": (weight.sum() * 0).sqrt(),  # 0, with an infinite derivative
        }[self.kind]
        return replace(loss, total=loss.total + harm)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "train.tsv"
    path.write_text("".join(f"{e.source}\t{e.target}\n" for e in TRAIN), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("nan", "the loss is nan"),
        ("inf", "the loss is inf"),
        ("gradient", "the gradient norm is nan although the loss is"),
    ],
)
def test_a_loss_or_gradient_that_is_no_number_is_named_with_its_batch(
    kind: str, text: str, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = transduction()
    monkeypatch.setattr(task, "loss", Bad(task, 7, kind))
    stream = task.batches(tsv(words), batch_size=5, seed=1)
    events: list[Event] = []
    spec = replace(SPEC, steps=30, evaluate_every=1000, checkpoint_seconds=0.0)
    with pytest.raises(NonFiniteError) as caught:
        fit(task, stream, DEV, spec, tmp_path / "run", listeners=[events.append])
    said = str(caught.value)
    assert said.startswith("step 7, ")
    assert text in said
    assert "Reduce learning_rate" in said
    lines = said.partition(f"{words}, lines ")[2].partition(".")[0].split(", ")
    again = task.batches(tsv(words), batch_size=5, seed=1).forever()
    seventh = [next(again) for _ in range(7)][-1]
    assert [int(line) for line in lines] == sorted(
        stream.where(int(index)).line for index in seventh.indices
    )
    assert isinstance(events[-1], Failed)
    assert events[-1].text == said
    # the checkpoints are older
    assert sorted(path.name for path in (tmp_path / "run/checkpoints").iterdir()) == [
        "step-000000005",
        "step-000000006",
    ]


def test_a_run_that_diverges_is_stopped(tmp_path: Path) -> None:
    spec = replace(SPEC, learning_rate=3e38, clip_norm=None, steps=50)
    with pytest.raises(NonFiniteError, match=r"learning rate .*e\+\d\d.*expected a finite number"):
        train(tmp_path, spec)


def test_any_error_is_an_event_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = transduction()

    def broken(*batch_and_state: Any) -> Loss:
        raise RuntimeError(f"out of patience with {len(batch_and_state)}")

    monkeypatch.setattr(task, "loss", broken)
    events: list[Event] = []
    with pytest.raises(RuntimeError, match="out of patience"):
        fit(task, batches(task), DEV, SPEC, tmp_path, listeners=[events.append])
    assert isinstance(events[-1], Failed)
    assert [line["event"] for line in read_log(tmp_path / "log.jsonl")] == ["started", "failed"]


def test_parts_of_a_loss_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = transduction()

    def in_parts(batch: Any, state: Any = None) -> Loss:
        loss = Transduction.loss(task, batch, state)
        return replace(loss, parts={"half": loss.total.detach() / 2})

    monkeypatch.setattr(task, "loss", in_parts)
    events: list[Event] = []
    spec = replace(SPEC, accumulate=2)
    fit(task, batches(task), [], spec, tmp_path, listeners=[events.append])
    steps = [event for event in events if isinstance(event, StepDone)]
    assert [2 * event.parts["half"] for event in steps] == pytest.approx([e.loss for e in steps])


@pytest.mark.parametrize(("low", "high"), [(2.5, 4.5), (0.3, 4.0), (0.001, 900.0)])
def test_the_axis_of_gradients_has_several_labels(low: float, high: float, tmp_path: Path) -> None:
    lines = [
        {"event": "step_done", "step": n, "loss": 1.0, "rate": 0.1, "norm": low if n % 2 else high}
        for n in range(1, 9)
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    draw_curves(log, tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    _, axes = drawn.split('aria-label="Gradient norm')
    axes = axes.split("</svg>")[0]
    for anchor in ("middle", "end"):  # labels of the steps and of the norms
        labels = re.findall(rf'class="muted small"[^>]*text-anchor="{anchor}">([^<]+)<', axes)
        assert len(set(labels)) >= 2, (anchor, labels)

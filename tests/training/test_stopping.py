"""The length of a run, its validations, and the weights it keeps."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from foveal.bundles import load_bundle
from foveal.data import BatchStream, Example, InMemory, Seq2SeqBatch
from foveal.metrics import Statistics
from foveal.tasks import Evaluation, PredictionSpec, Transduction
from foveal.tasks.base._answerer import ignore
from foveal.training import (
    Evaluated,
    Event,
    Finished,
    Improved,
    StepDone,
    Stopped,
    TrainingSpec,
    Warned,
    fit,
)
from foveal.training.checkpoints._position import (
    EpochSize,
    Position,
    Score,
    evaluation_due,
    progress_of,
)
from tests.training.toys import BATCH, DEV, TRAIN, batches, train, transduction

pytestmark = pytest.mark.slow

SPEC = TrainingSpec(steps=40, learning_rate=5e-3, evaluate_every=4, checkpoint_seconds=1000.0)


class Script:
    """Replace `Transduction.evaluate`: return scores from a list, and record the weights."""

    def __init__(self, task: Transduction, values: Sequence[float], noise: float = 0.0) -> None:
        self.task, self.values, self.noise = task, list(values), noise
        self.weights: list[torch.Tensor] = []
        self.sizes: list[int] = []
        self.widths: list[int] = []

    def __call__(
        self,
        examples: Sequence[Example],
        settings: PredictionSpec | None = None,
        answered: Callable[[int], None] = ignore,
    ) -> Evaluation:
        answered(len(examples))
        self.weights.append(next(self.task.model.parameters()).detach().clone())
        self.sizes.append(len(examples))
        self.widths.append(5 if settings is None else settings.beam_size)
        assert not self.task.model.training
        value = self.values.pop(0) if self.values else 99.0
        statistics = Statistics(
            name="wer",
            rows=value + self.noise * (-1.0) ** np.arange(len(examples))[:, None],
            score=lambda sums: sums[:, 0] / len(examples),
            signature="scripted",
            higher_is_better=False,
        )
        return Evaluation(
            main=self.task.main_metric,
            statistics={"wer": statistics},
            examples=examples,
            references=[example.target or "" for example in examples],
            predictions=(),
            symbols=[],
            known=(),
            rare=(),
        )


def scripted(
    values: Sequence[float],
    spec: TrainingSpec,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    noise: float = 0.0,
) -> tuple[list[Event], Script, Transduction]:
    task = transduction()
    script = Script(task, values, noise)
    monkeypatch.setattr(task, "evaluate", script)
    events: list[Event] = []
    fit(task, batches(task), DEV, spec, out, listeners=[events.append])
    return events, script, task


def test_it_stops_when_the_score_has_not_improved_for_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [50, 40, 45, 40, 41, 30]  # a second 40 is not an improvement
    spec = replace(SPEC, patience=3)
    events, script, task = scripted(values, spec, tmp_path, monkeypatch)
    (stopped,) = [event for event in events if isinstance(event, Stopped)]
    assert (stopped.reason, stopped.step) == ("patience", 20)
    assert "wer has not improved on 40 (step 8) for 3 validations" in stopped.text
    improved = [event for event in events if isinstance(event, Improved)]
    assert [(event.step, event.value, event.before) for event in improved] == [
        (4, 50, None),
        (8, 40, 50),
    ]
    kept = next(load_bundle(tmp_path).model.parameters())
    assert torch.equal(kept, script.weights[1])
    assert torch.equal(next(task.model.parameters()), script.weights[1])


def test_validations_are_greedy_and_the_final_score_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(SPEC, steps=8, validation_size=7)
    _, script, _ = scripted([3, 2, 1], spec, tmp_path, monkeypatch)
    assert script.widths == [1, 1, 5]
    assert script.sizes == [7, 7, 20]


def test_without_patience_it_goes_to_the_end_and_keeps_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, script, _ = scripted([5, 1, *range(2, 10)], SPEC, tmp_path, monkeypatch)
    (stopped,) = [event for event in events if isinstance(event, Stopped)]
    assert (stopped.reason, stopped.step) == ("length", 40)
    (finished,) = [event for event in events if isinstance(event, Finished)]
    assert finished.best_step == 8
    assert torch.equal(next(load_bundle(tmp_path).model.parameters()), script.weights[1])


def test_a_run_that_stops_early_keeps_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(SPEC, patience=1)
    events, _, _ = scripted([50, 40, 45], spec, tmp_path, monkeypatch, noise=40.0)
    (finished,) = [event for event in events if isinstance(event, Finished)]
    assert (finished.step, finished.best_step) == (12, 8)


def test_a_score_that_is_no_number_is_never_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [float("nan"), 7.0, float("nan"), 8.0]
    events, _, _ = scripted(values, replace(SPEC, steps=16), tmp_path, monkeypatch)
    assert [event.value for event in events if isinstance(event, Improved)] == [7.0]


def test_without_examples_to_validate_on_the_last_weights_are_kept(tmp_path: Path) -> None:
    events: list[Event] = []
    outcome = train(tmp_path, SPEC, dev=(), listeners=[events.append])
    assert (outcome.step, outcome.best_step, outcome.metrics) == (40, 40, {})
    assert not any(isinstance(event, Evaluated) for event in events)
    assert load_bundle(tmp_path).predict(DEV)


def test_the_user_is_told_once_when_validation_takes_too_long(tmp_path: Path) -> None:
    events: list[Event] = []
    train(tmp_path, replace(SPEC, steps=8, evaluate_every=1), listeners=[events.append])
    (warned,) = [event for event in events if isinstance(event, Warned)]
    assert (
        "expected at most 10%. Reduce validation_size (1000), or increase evaluate_every"
        in warned.text
    )


# length of a run


def test_steps_are_counted(tmp_path: Path) -> None:
    assert train(tmp_path, replace(SPEC, steps=7)).step == 7


def test_epochs_are_counted(tmp_path: Path) -> None:
    events: list[Event] = []
    spec = replace(SPEC, steps=None, epochs=1.5)
    outcome = train(tmp_path, spec, listeners=[events.append])
    an_epoch = -(-len(TRAIN) // BATCH)
    assert outcome.step == -(-3 * an_epoch // 2)
    steps = [event for event in events if isinstance(event, StepDone)]
    assert [event.epoch for event in steps] == pytest.approx(
        [number / an_epoch for number in range(1, outcome.step + 1)]
    )
    assert sum(event.tokens for event in steps[:an_epoch]) == sum(
        len(example.text) + 1 for example in TRAIN
    )


def test_the_first_limit_that_is_reached_ends_the_run(tmp_path: Path) -> None:
    assert train(tmp_path / "a", replace(SPEC, steps=5, epochs=1.0)).step == 5
    assert train(tmp_path / "b", replace(SPEC, steps=500, epochs=1.0)).step == 13


def test_minutes_end_a_run_and_its_schedule(tmp_path: Path) -> None:
    events: list[Event] = []
    spec = replace(SPEC, steps=None, minutes=0.02, evaluate_every=10_000, log_every=1)
    outcome = train(tmp_path, spec, listeners=[events.append])
    assert outcome.reason == "time"
    steps = [event for event in events if isinstance(event, StepDone)]
    assert steps[-2].seconds < 1.2 <= steps[-1].seconds
    shares = [event.seconds / 1.2 for event in steps[:-1]]
    assert [event.progress for event in steps[:-1]] == pytest.approx(shares)
    rates = [event.rate for event in steps[1:]]
    assert rates == pytest.approx([5e-3 * (1 - share) for share in shares])


@given(
    step=st.integers(0, 200),
    epochs=st.floats(0, 20),
    seconds=st.floats(0, 900),
    limits=st.tuples(*[st.booleans()] * 3).filter(any),
)
def test_progress_is_the_largest_share(
    step: int, epochs: float, seconds: float, limits: tuple[bool, bool, bool]
) -> None:
    spec = TrainingSpec(
        steps=100 if limits[0] else None,
        epochs=10.0 if limits[1] else None,
        minutes=5.0 if limits[2] else None,
    )
    shares = (step / 100, epochs / 10, seconds / 300)
    expected = max(share for share, given_ in zip(shares, limits, strict=True) if given_)
    progress = progress_of(spec, step=step, epochs=epochs, seconds=seconds)
    assert progress == pytest.approx(min(1, expected))


# position in a run


def test_a_corpus_that_does_not_know_its_length_goes_by_examples_or_the_epoch_before() -> None:
    at = Position()
    for _ in range(3):
        at = at.after_batches([0], 10, EpochSize(None, 40))
    assert at.epochs == 0.75
    at = at.after_batches([0, 0], 20, EpochSize(None, 40))
    assert at.epochs == 1.0  # more examples than announced
    at = at.after_batches([1], 10, EpochSize(None, 40))
    assert (at.epoch, at.epochs) == (1, 1.25)
    unknown = Position()
    for epoch in (0, 0, 0, 0, 1, 1):
        unknown = unknown.after_batches([epoch], 10, EpochSize(None, None))
    assert (unknown.batches_before, unknown.epochs) == (4, 1.5)


def in_pools(task: Transduction) -> BatchStream[Seq2SeqBatch]:
    """Return a stream that holds only part of the examples at a time, as for a large corpus."""
    source = InMemory(TRAIN)
    return BatchStream(source, task.encode, task.collate, batch_size=BATCH, seed=1, pool_size=1000)


@pytest.mark.parametrize("num_examples", [len(TRAIN), None])
def test_a_large_corpus_is_trained_on_by_epochs(num_examples: int | None, tmp_path: Path) -> None:
    task = transduction()
    per_epoch = sum(1 for _ in in_pools(task))
    stream = in_pools(task)
    events: list[Event] = []
    spec = replace(SPEC, steps=None, epochs=2.0)
    outcome = fit(
        task, stream, [], spec, tmp_path, num_examples=num_examples, listeners=[events.append]
    )
    assert stream.num_batches is None
    assert outcome.step == 2 * per_epoch
    progress = [event.progress for event in events if isinstance(event, StepDone)]
    even = [step / len(progress) for step in range(1, len(progress) + 1)]
    if num_examples is None:  # known from the second epoch on
        assert progress[: per_epoch - 1] == [0.0] * (per_epoch - 1)
        progress, even = progress[per_epoch:], even[per_epoch:]
    assert progress == pytest.approx(even, abs=0.03)


@given(
    step=st.integers(1, 500),
    seen=st.integers(0, 10_000),
    progress=st.floats(0, 1),
    size=st.integers(1, 1000),
)
def test_when_a_validation_is_due(step: int, seen: int, progress: float, size: int) -> None:
    at = Position(step=step, seen=seen, progress=progress)
    due = evaluation_due(TrainingSpec(steps=1), at, size)
    assert due == (step >= 50 and seen >= 10 * size and progress >= 0.01 - 1e-9)
    assert evaluation_due(TrainingSpec(steps=1, evaluate_every=20), at, size) == (step >= 20)


def test_a_run_has_no_more_than_a_hundred_validations() -> None:
    at, number = Position(), 0
    for step in range(10, 20_001, 10):
        at = replace(at, step=step, seen=64 * step, progress=step / 20_000)
        if evaluation_due(TrainingSpec(steps=20_000), at, 100):
            number += 1
            at = replace(
                at,
                evaluated_step=step,
                evaluated_seen=at.seen,
                evaluated_progress=at.progress,
            )
    assert number == 100


def test_better_is_by_direction_and_ties_go_to_the_next_metric() -> None:
    assert Score(1.0).beats(None, higher=True)
    assert Score(2.0).beats(Score(1.0), higher=True)
    assert not Score(2.0).beats(Score(1.0), higher=False)
    assert Score(1.0).beats(Score(2.0, 5.0), higher=False)
    assert not Score(1.0).beats(Score(1.0), higher=True)
    assert Score(1.0, 3.0).beats(Score(1.0, 2.0), higher=False)
    assert not Score(1.0, 2.0).beats(Score(1.0, 3.0), higher=False)
    assert not Score(float("nan")).beats(None, higher=True)
    assert not Score(float("nan"), 1.0).beats(Score(1.0), higher=False)

"""A training step: its gradient, learning rate, moving average of the weights, and randomness."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor, nn

from foveal.data import InMemory, Seq2SeqBatch
from foveal.errors import SpecError
from foveal.tasks import ClassificationSpec, Transduction
from foveal.training import Event, StepDone, TrainingSpec, fit
from foveal.training._average import RENEW_EVERY, Average
from foveal.training._engine import Engine
from foveal.training._group import Group
from foveal.training._schedule import rate_share
from foveal.training._scheduled_sampling import with_own_inputs
from tests.training.toys import TRAIN, batches, train, transduction

pytestmark = pytest.mark.slow

ALONE = Group(0, 1)
SPEC = TrainingSpec(steps=100, learning_rate=1e-2)


def some_batches(task: Transduction, number: int, size: int = 8) -> list[Seq2SeqBatch]:
    stream = task.batches(InMemory(TRAIN), batch_size=size, seed=3)
    return list(islice(stream.forever(), number))


def joined(task: Transduction, parts: Sequence[Seq2SeqBatch]) -> Seq2SeqBatch:
    """Join several batches into one."""
    indices = [int(n) & ((1 << 40) - 1) for batch in parts for n in batch.indices]
    return task.collate([task.encode(TRAIN[n]) for n in indices])


def take_steps(task: Transduction, spec: TrainingSpec, steps: Sequence[Sequence[Any]]) -> None:
    engine = Engine(task.model, spec, ALONE, num_signals=0)
    task.model.train()
    for number, of_step in enumerate(steps, 1):
        engine.step(task.loss, of_step, None, number=number, rate=spec.learning_rate, signals=())


@pytest.mark.parametrize("clip_norm", [None, 1.0, 0.05])
def test_accumulated_batches_are_one_large_batch(clip_norm: float | None) -> None:
    spec = replace(SPEC, clip_norm=clip_norm)
    apart, together = transduction(0.0), transduction(0.0)
    parts = some_batches(apart, 12)
    groups = [parts[start : start + 4] for start in range(0, 12, 4)]
    take_steps(apart, spec, groups)
    take_steps(together, spec, [[joined(together, group)] for group in groups])
    pairs = zip(apart.model.parameters(), together.model.parameters(), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
@pytest.mark.parametrize("clip_norm", [None, 0.05])
def test_a_step_is_that_of_torch_on_the_mean_loss(
    optimizer: Literal["adam", "adamw"], clip_norm: float | None
) -> None:
    spec = replace(SPEC, optimizer=optimizer, clip_norm=clip_norm, weight_decay=0.1)
    ours, plain = transduction(0.0), transduction(0.0)
    some = some_batches(ours, 3)
    take_steps(ours, spec, [[batch] for batch in some])
    kind = torch.optim.Adam if optimizer == "adam" else torch.optim.AdamW
    stepper = kind(plain.model.parameters(), lr=spec.learning_rate, weight_decay=0.1)
    plain.model.train()
    for batch in some:
        stepper.zero_grad()
        loss = plain.loss(batch)
        (loss.total / loss.count).backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(plain.model.parameters(), clip_norm)
        stepper.step()
    pairs = zip(ours.model.parameters(), plain.model.parameters(), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_the_norm_is_that_of_the_mean_loss_before_clipping() -> None:
    task = transduction(0.0)
    (batch,) = some_batches(task, 1)
    task.model.train()
    loss = task.loss(batch)
    mean = loss.total / loss.count
    gradients = torch.autograd.grad(mean, list(task.model.parameters()))
    expected = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    engine = Engine(task.model, replace(SPEC, clip_norm=0.01), ALONE, num_signals=1)
    reduced, _ = engine.step(task.loss, [batch], None, number=1, rate=0.1, signals=(7.0,))
    torch.testing.assert_close(reduced.norm, expected, atol=0, rtol=1e-4)
    torch.testing.assert_close(reduced.total / reduced.tokens, mean.detach(), atol=0, rtol=1e-5)
    assert reduced.signals == (7.0,)


def test_a_weight_that_a_step_does_not_use_has_gradient_zero() -> None:
    task = transduction(0.0)
    task.model.unused = nn.Parameter(torch.ones(2))
    take_steps(task, SPEC, [[batch] for batch in some_batches(task, 2)])
    unused = dict(task.model.named_parameters())["unused"]
    assert unused.grad is not None
    assert unused.grad.tolist() == [0, 0]
    assert torch.equal(unused, torch.ones(2))


def test_frozen_weights_stay(tmp_path: Path) -> None:
    task = transduction()
    frozen = next(task.model.parameters())
    frozen.requires_grad = False
    before = frozen.clone()
    train(tmp_path, replace(SPEC, steps=3, ema_decay=0.9), task=task)
    assert torch.equal(frozen, before)


def test_what_is_random_depends_on_seed_process_and_step_alone() -> None:
    def drawn(seed: int, rank: int, number: int) -> list[float]:
        task = transduction()
        engine = Engine(task.model, replace(SPEC, seed=seed), Group(rank, 1), num_signals=0)
        found: list[Tensor] = []

        def loss_of(batch: Seq2SeqBatch, state: Any) -> Any:
            found.append(torch.rand(4))
            return task.loss(batch, state)

        torch.rand(number + 5)  # earlier draws do not matter
        engine.step(loss_of, batch, None, number=number, rate=0.0, signals=())
        return found[0].tolist()

    batch = some_batches(transduction(), 1)
    keys = [(1, 0, 1), (1, 0, 2), (1, 1, 1), (2, 0, 1), (0, 1, 2), (2, 1, 0)]
    draws = [drawn(*key) for key in keys]
    assert draws[0] == drawn(*keys[0])
    assert len({tuple(draw) for draw in draws}) == len(keys)


def test_training_leaves_the_generator_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(tmp_path, replace(SPEC, steps=2))
    assert torch.equal(torch.rand(3), expected)


def test_validation_changes_nothing_of_training(tmp_path: Path) -> None:
    found: list[list[float]] = []
    for number, every in enumerate((2, 1000)):
        events: list[Event] = []
        spec = replace(SPEC, steps=12, evaluate_every=every, ema_decay=0.9)
        train(tmp_path / str(number), spec, listeners=[events.append])
        found.append([event.loss for event in events if isinstance(event, StepDone)])
    assert found[0] == found[1]


def test_bf16_is_close_to_float32() -> None:
    exact, half = transduction(0.0), transduction(0.0)
    some = some_batches(exact, 3)
    take_steps(exact, replace(SPEC, learning_rate=1e-3), [[batch] for batch in some])
    take_steps(half, replace(SPEC, learning_rate=1e-3, bf16=True), [[batch] for batch in some])
    pairs = list(zip(exact.model.parameters(), half.model.parameters(), strict=True))
    assert any(not torch.equal(one, other) for one, other in pairs)
    for one, other in pairs:
        assert other.dtype == torch.float32
        assert (one - other).abs().max() < 7e-3  # three steps of 1e-3 in either direction


# schedules

PROGRESS = st.floats(0, 1)
STEPS = st.integers(1, 10_000)


@given(step=STEPS, warmup=st.integers(1, 500), progress=PROGRESS, last=st.floats(0, 1))
def test_schedules_have_their_closed_forms(
    step: int, warmup: int, progress: float, last: float
) -> None:
    spec = TrainingSpec(steps=100, warmup_steps=warmup, final_lr_ratio=last)
    warm = min(step, warmup) / warmup
    forms = {
        "constant": 1.0,
        "linear": (1 - progress) + last * progress,
        "cosine": last + (1 - last) * math.cos(math.pi * progress / 2) ** 2,
        "inverse_square_root": 1.0 if step <= warmup else (warmup / step) ** 0.5,
    }
    for name, form in forms.items():
        share = rate_share(replace(spec, schedule=name), step, progress)
        assert share == pytest.approx(warm * form, abs=1e-12), name


@given(step=STEPS, progress=PROGRESS)
def test_without_warm_up_the_rate_starts_at_the_top(step: int, progress: float) -> None:
    spec = TrainingSpec(steps=100, schedule="constant")
    assert rate_share(spec, step, progress) == 1.0


def test_the_rates_of_a_run(tmp_path: Path) -> None:
    events: list[Event] = []
    spec = replace(SPEC, steps=10, warmup_steps=4, learning_rate=0.5)
    train(tmp_path, spec, listeners=[events.append])
    rates = [event.rate for event in events if isinstance(event, StepDone)]
    expected = [0.5 * min(1, n / 4) * (1 - (n - 1) / 10) for n in range(1, 11)]
    assert rates == pytest.approx(expected)


# moving average


def test_the_mean_follows_its_formula() -> None:
    weight = nn.Parameter(torch.zeros(2))
    average = Average({"w": weight}, decay=0.99)
    expected = torch.zeros(2)
    for step in range(1, 20 * RENEW_EVERY + 1):
        with torch.no_grad():
            weight.copy_(torch.full((2,), float(step)))
        average.renew(step)
        if step <= RENEW_EVERY - 1:
            expected = weight.detach().clone()
        elif step % RENEW_EVERY == 0:
            k = step // RENEW_EVERY
            decay = min(0.99**RENEW_EVERY, k / (9 + k))
            expected = decay * expected + (1 - decay) * weight.detach()
        torch.testing.assert_close(average.mean["w"], expected)


def test_the_mean_is_what_is_scored_and_kept(tmp_path: Path) -> None:
    spec = replace(SPEC, steps=24, ema_decay=0.9, evaluate_every=1000)
    averaged, plain = transduction(), transduction()
    train(tmp_path / "mean", spec, task=averaged)
    train(tmp_path / "last", replace(spec, ema_decay=0.0), task=plain)
    pairs = list(zip(averaged.model.parameters(), plain.model.parameters(), strict=True))
    assert any(not torch.equal(one, other) for one, other in pairs)
    # By hand: the mean over the weights of the plain run.
    task = transduction()
    trained = dict(task.model.named_parameters())
    average = Average(trained, 0.9)

    def renew(event: Event) -> None:
        if isinstance(event, StepDone):
            average.renew(event.step)

    task_spec = replace(spec, ema_decay=0.0, log_every=1)
    fit(task, batches(task), [], task_spec, tmp_path / "hand", listeners=[renew])
    for name, parameter in averaged.model.named_parameters():
        assert torch.equal(parameter, average.mean[name]), name


# scheduled sampling


def test_own_inputs_are_the_guesses_of_the_model() -> None:
    task = transduction(0.0)
    (batch,) = some_batches(task, 1)
    log_probs = task.model(batch.source, batch.source_mask, batch.tokens, batch.mask).log_probs
    changed = with_own_inputs(task, batch, 1.0)
    real = batch.mask[:, 1:]
    assert torch.equal(changed.tokens[:, 0], batch.tokens[:, 0])
    assert torch.equal(changed.tokens[:, 1:][real], log_probs.argmax(-1)[:, :-1][real])
    assert torch.equal(changed.tokens[:, 1:][~real], batch.tokens[:, 1:][~real])
    assert torch.equal(changed.targets, batch.targets)
    assert torch.equal(with_own_inputs(task, batch, 0.0).tokens, batch.tokens)


def test_the_share_of_own_inputs_rises_over_the_run(tmp_path: Path) -> None:
    losses: list[list[float]] = []
    for number, share in enumerate((0.0, 1.0)):
        events: list[Event] = []
        spec = replace(SPEC, steps=5, scheduled_sampling=share, log_every=1)
        train(tmp_path / str(number), spec, task=transduction(0.0), listeners=[events.append])
        losses.append([event.loss for event in events if isinstance(event, StepDone)])
    assert losses[0][0] == losses[1][0]
    assert losses[0][-1] != losses[1][-1]


def test_own_inputs_need_a_decoder(tmp_path: Path) -> None:
    task = ClassificationSpec().build_from(TRAIN)
    stream = task.batches(InMemory(TRAIN), batch_size=8)
    with pytest.raises(SpecError, match=r"got a Classification.*Set scheduled_sampling to 0"):
        fit(task, stream, [], replace(SPEC, scheduled_sampling=0.5), tmp_path)

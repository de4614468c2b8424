"""Vital signs: the doctor's measurements of a model on one batch, as plain numbers.

The names are paths: `gradient_rate/decoder`, `attention/entropy`, `padding/more`. Measuring has no side
effects: dropout is off, parameters get no gradient, and the model keeps its training mode.

Axes: B examples.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from ...data import Seq2SeqBatch
from ...data._batches import LabeledBatch, PairBatch, TaggedBatch, TextBatch, move
from ...models._encoder_decoder import AbstractEncoderDecoder
from ...networks import BahdanauDecoder, InputFeedingDecoder
from ...tasks import AbstractTask
from ...tasks.base._forced import Forced
from ...tasks.base._writing import AbstractWriting
from ._looking import looking
from ._padding import padding
from ._readings import Readings
from ._recurrences import Recurrence, fed_recurrences, listening, recurrences
from ._through_time import course

MAX_ROWS = 8  # enough for means, and a probe stays cheap


def vital_signs(task: AbstractTask[Any], batch: Any) -> Readings:
    """Measure a model on some rows of a batch; a probe for `fit`.

    Measures gradients through time, saturated gates and dead units of every recurrent cell, attention, padding
    invariance, and the loss.

    Args:
        task: A task with its model.
        batch: A batch of the task; only its first rows are measured.

    Returns:
        The readings by name.
    """
    return measured(task, batch, MAX_ROWS)


def measured(task: AbstractTask[Any], batch: Any, num_rows: int) -> Readings:
    """Measure vital signs on this many rows."""
    batch = _rows(batch, num_rows)
    with _measuring(task.model), listening(task.model) as heard:
        found = task.forced(batch)
        likelihood = found.log_prob.sum()
        read = recurrences(heard, -likelihood) if likelihood.requires_grad else []
    with _measuring(task.model):
        return {
            "guessing": task.guessing_loss,
            "loss": -float(likelihood.detach()) / max(1, found.num_symbols),
            **_of_cells(task, [*read, *_fed(task, batch)]),
            **_of_attention(found),
            **_named("padding", padding(task, batch, found.log_prob.detach())),
        }


def _of_cells(task: AbstractTask[Any], read: list[Recurrence]) -> Readings:
    readings: dict[str, float | list[float]] = {}
    is_bridged = float(task.is_bridged)
    for each in read:
        one = course(each)
        if one.rate is not None:
            readings[f"gradient_norms/{one.name}"] = one.norms
            readings[f"gradient_rate/{one.name}"] = one.rate
            readings[f"gradient_factor/{one.name}"] = one.factor
            readings[f"gradient_steps/{one.name}"] = float(len(one.norms) - 1)
            readings[f"gradient_gated/{one.name}"] = float(one.saturated is not None)
            readings[f"gradient_bridged/{one.name}"] = is_bridged
        if one.saturated is not None:
            readings[f"gates_saturated/{one.name}"] = one.saturated
        readings[f"units_dead/{one.name}"] = one.dead
    return readings


def _of_attention(found: Forced) -> Readings:
    return {} if found.looked is None else _named("attention", looking(found.looked))


def _named(group: str, numbers: dict[str, float]) -> Readings:
    return {f"{group}/{name}": value for name, value in numbers.items()}


def _fed(task: AbstractTask[Any], batch: Any) -> list[Recurrence]:
    """Return the recurrence of a decoder that reads its context, whose single steps no hook on the stack records."""
    if not isinstance(task, AbstractWriting):
        return []
    model: AbstractEncoderDecoder = task.model
    if not isinstance(model.decoder, InputFeedingDecoder | BahdanauDecoder):
        return []
    batch = move(batch, task.device)
    memory, text = model.encode(*task.source_of(batch)), task.text_of(batch)
    return fed_recurrences(model.decoder, text.tokens, text.mask, memory)


@contextmanager
def _measuring(model: nn.Module) -> Iterator[None]:
    """Run the model without dropout. cuDNN has no backward pass in eval mode; torch's own kernels do."""
    was_training = model.training
    model.eval()
    try:
        with torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        model.train(was_training)


def _rows(batch: Any, number: int) -> Any:
    """Return the first rows of a batch, whose examples are in random order."""
    if not isinstance(batch, Seq2SeqBatch | LabeledBatch | PairBatch | TaggedBatch | TextBatch):
        return batch
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return replace(
        batch,
        **{name: part[:number] for name, part in values.items() if isinstance(part, Tensor)},
    )

"""The numbers of the latest steps, left where they were computed until somebody reads them.

Reading a tensor waits for the device that computes it, so the loop reads some steps at a time. What
went wrong is then found a few steps late, but before a validation, a checkpoint or the end: the first
bad step is named with its batch, and no file ever holds what came after it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..data._batches import TextBatch
from ..data._example import Where
from ..errors import NonFiniteError
from ._gradients import Reduced
from .events._events import StepDone

_MAX_NAMED = 20  # examples named in an error


class Known(NamedTuple):
    """What is known of a step without reading a tensor."""

    step: int
    epoch: float
    progress: float
    rate: float
    seconds: float
    batches: Sequence[Any]  # of this process
    wait: float  # seconds that went into reading them


class Ledger:
    """Steps that were taken and not read yet."""

    def __init__(self) -> None:
        self._known: list[Known] = []
        self._numbers: list[Tensor] = []
        self._parts: list[Mapping[str, Tensor]] = []

    def add(self, known: Known, reduced: Reduced) -> None:
        """Note a step."""
        self._known.append(known)
        self._numbers += [reduced.total, reduced.tokens, reduced.norm]
        self._parts.append(reduced.parts)

    def read(self, where: Callable[[int], Where]) -> list[StepDone]:
        """The steps since the last reading, or `NonFiniteError` if one of them went wrong.

        Args:
            where: the file and line of an example, from its index in a batch.
        """
        if not self._known:
            return []
        numbers = torch.stack(self._numbers).view(-1, 3).tolist()
        rows = zip(self._known, numbers, self._parts, strict=True)
        done = [_step_done(known, *of_step, parts=parts) for known, of_step, parts in rows]
        for known, step in zip(self._known, done, strict=True):
            if not (math.isfinite(step.loss) and math.isfinite(step.norm)):
                raise NonFiniteError(_what_went_wrong(known, step, where))
        self._known, self._numbers, self._parts = [], [], []
        return done


def _step_done(
    known: Known, total: float, count: float, norm: float, *, parts: Mapping[str, Tensor]
) -> StepDone:
    return StepDone(
        step=known.step,
        epoch=known.epoch,
        progress=known.progress,
        loss=total / count if count else math.nan,
        tokens=round(count) if math.isfinite(count) else 0,
        inputs=sum(batch.num_inputs for batch in known.batches),
        norm=norm,
        rate=known.rate,
        seconds=known.seconds,
        parts={name: part.item() for name, part in parts.items()},
        wait=known.wait,
    )


def _what_went_wrong(known: Known, step: StepDone, where: Callable[[int], Where]) -> str:
    what = (
        f"the gradient norm is {step.norm} although the loss is {step.loss:g}"
        if math.isfinite(step.loss)
        else f"the loss is {step.loss}"
    )
    return (
        f"step {step.step}, epoch {step.epoch:.2f}, learning rate {step.rate:g}: {what}, expected a "
        f"finite number. The batch has {_named(known.batches, where)}. "
        f"Lower learning_rate, raise warmup_steps, lower clip_norm or set bf16=false, and start again; "
        f"if it stops at the same examples, look at them. The last checkpoint is from before this."
    )


def _named(batches: Sequence[Any], where: Callable[[int], Where]) -> str:
    """The examples of batches by file and line, or the size of a stretch of running text."""
    if isinstance(batches[0], TextBatch):
        rows, columns = batches[0].mask.shape
        return f"the next {columns} symbols of {rows} places of the text"
    indices = [index for batch in batches for index in batch.indices.tolist()]
    places: dict[str, list[int]] = {}
    for index in indices[:_MAX_NAMED]:
        place = where(index)
        places.setdefault(place.file, []).append(place.line)
    named = "; ".join(
        f"{file}, lines {', '.join(str(line) for line in sorted(lines))}"
        for file, lines in places.items()
    )
    left = len(indices) - _MAX_NAMED
    return f"{named} and {left} more" if left > 0 else named

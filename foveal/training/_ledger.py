"""Results of the latest steps, kept on the device until they are read.

Reading a tensor waits for the device that computes it, so the loop reads several steps at once. An error is then found
a few steps late, but always before a validation, a checkpoint or the end. The error names the first bad step and its
batch, and no file contains results of later steps.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..data._batches import TextBatch
from ..data._example import Where
from ..errors import NonFiniteError
from ._gradients import Reduced
from .events._events import StepDone

_MAX_NAMED = 20  # number of examples named in an error
# With float16, the loss scale is halved at every overflow. After this many in a row it is below 1e-7.
_MOST_OVERFLOWS = 40


class Known(NamedTuple):
    """The facts about a step that are known without reading a tensor."""

    step: int
    epoch: float
    progress: float
    rate: float
    seconds: float
    batches: Sequence[Any]  # the batches of this process
    wait: float  # seconds spent on reading the batches


class Ledger:
    """Steps whose results have not been read yet.

    Args:
        skips_overflows: Whether the optimizer skips a step whose gradient is not finite, as with float16. The norm of
            such a step is reported as 0.
    """

    def __init__(self, *, skips_overflows: bool = False) -> None:
        self._skips_overflows, self._overflows = skips_overflows, 0
        self._known: list[Known] = []
        self._numbers: list[Tensor] = []
        self._parts: list[Mapping[str, Tensor]] = []

    def add(self, known: Known, reduced: Reduced) -> None:
        """Add a step."""
        self._known.append(known)
        self._numbers += [reduced.total, reduced.tokens, reduced.norm]
        self._parts.append(reduced.parts)

    def read(self, where: Callable[[int], Where]) -> list[StepDone]:
        """Read the steps since the last call.

        Args:
            where: A function from the index of an example in a batch to its file and line.

        Returns:
            One event for each step.

        Raises:
            NonFiniteError: If the loss or the gradient of a step is not finite.
        """
        if not self._known:
            return []
        numbers = torch.stack(self._numbers).view(-1, 3).tolist()
        rows = zip(self._known, numbers, self._parts, strict=True)
        done = [_step_done(known, *of_step, parts=parts) for known, of_step, parts in rows]
        for known, step in zip(self._known, done, strict=True):
            if not (math.isfinite(step.loss) and self._is_usable(step.norm)):
                raise NonFiniteError(_what_went_wrong(known, step, where))
        self._known, self._numbers, self._parts = [], [], []
        return [step if math.isfinite(step.norm) else replace(step, norm=0.0) for step in done]

    def _is_usable(self, norm: float) -> bool:
        self._overflows = 0 if math.isfinite(norm) else self._overflows + 1
        return self._overflows <= (_MOST_OVERFLOWS if self._skips_overflows else 0)


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
        f"finite number. The batch contains {_named(known.batches, where)}. Reduce learning_rate, "
        f"increase warmup_steps, reduce clip_norm or set bf16=false (fp16=false), and start again; if training "
        f"stops at the same examples, check them. The last checkpoint is from before this step."
    )


def _named(batches: Sequence[Any], where: Callable[[int], Where]) -> str:
    """Return the examples of batches by file and line, or the size of a chunk of running text."""
    if isinstance(batches[0], TextBatch):
        rows, columns = batches[0].mask.shape
        return f"the next {columns} tokens at {rows} positions of the text"
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

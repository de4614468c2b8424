"""What happens in a run, as small values sent to plain callables.

    Started, ThreadsChosen?, StepDone*, (Evaluated, Improved?)*, Probed*, Checkpointed*, Warned*, Stopped, Scoring*,
    Finished or Failed

A listener is any function of an event: the progress display, the log and TensorBoard are three of
them. Process 0 alone sends events. A listener that raises ends the run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from ._probe import Readings

StopReason = Literal["length", "time", "patience", "interrupted"]


class Answer(NamedTuple):
    """What the model made of one example of the validation set."""

    source: str
    expected: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Started:
    """The run begins, or goes on after so many steps."""

    step: int  # 0 at the beginning
    processes: int
    parameters: int
    metric: str
    higher_is_better: bool


@dataclass(frozen=True, kw_only=True)
class ThreadsChosen:
    """The first step was measured with one thread and with all of them."""

    step: int
    threads: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class StepDone:
    """One update of the weights. Sent some steps late, when loss and norm are read."""

    step: int  # from 1
    epoch: float  # readings of the data so far
    progress: float  # share of the run that is over
    loss: float  # mean over all tokens of the step
    tokens: int  # that the loss is a mean of, over all processes
    norm: float  # of the gradient, before clipping
    rate: float  # learning rate
    seconds: float  # since the run began, validation included
    parts: Mapping[str, float]  # of the loss, where it has more than one; of process 0
    wait: float = 0.0  # seconds of this step that went into reading its batches, of process 0
    inputs: int = 0  # tokens of source and target that process 0 has read, without padding


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A validation by free decoding."""

    step: int
    metrics: Mapping[str, float]
    samples: tuple[Answer, ...]
    seconds: float  # that it took
    share: float  # of the time so far that went into validations


@dataclass(frozen=True, kw_only=True)
class Improved:
    """The main metric is better than in all validations before, or equal and the next one better."""

    step: int
    metric: str
    value: float
    before: float | None  # the best so far; None at the first validation


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What probes measured of the model, on the batch of the latest step."""

    step: int
    readings: Readings
    seconds: float  # that it took


@dataclass(frozen=True, kw_only=True)
class Checkpointed:
    """Everything needed to go on from here is on disk."""

    step: int
    folder: Path
    seconds: float  # that it took


@dataclass(frozen=True, kw_only=True)
class Warned:
    """Something that the user should know and that does not stop the run."""

    step: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """No more steps; what was learnt will be scored and saved now."""

    step: int
    reason: StopReason
    text: str


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """The model is saved and being scored."""

    step: int
    name: str  # of the set: dev or test
    done: int  # examples
    total: int


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The run is over and its folder complete."""

    step: int
    best_step: int
    metrics: Mapping[str, float]  # of the weights that are kept, on the whole validation set
    test: Mapping[str, float]  # on the test set; empty without one
    seconds: float
    share: float  # of the time that went into validations
    warnings: tuple[str, ...] = ()  # about scores that are no better than a baseline


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The run ends with an error, which is raised next."""

    step: int
    text: str


Event: TypeAlias = (
    Started
    | ThreadsChosen
    | StepDone
    | Evaluated
    | Improved
    | Probed
    | Checkpointed
    | Warned
    | Stopped
    | Scoring
    | Finished
    | Failed
)
Listener: TypeAlias = Callable[[Event], None]

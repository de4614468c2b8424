"""Events of a run, as small values that are sent to plain callables.

    Started, ThreadsChosen?, StepDone*, (Evaluated, Improved?)*, Probed*, Checkpointed*, Warned*, Stopped, Scoring*,
    Finished or Failed

A listener is any function of an event, for example the progress display, the log and TensorBoard. Only process 0 sends
events. A listener that raises an error ends the run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from ._probe import Readings

StopReason = Literal["length", "time", "patience", "interrupted"]


class Answer(NamedTuple):
    """The prediction of the model for one example of the validation set."""

    source: str
    expected: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Started:
    """The run starts, or resumes after some steps."""

    step: int  # 0 for a new run
    processes: int
    parameters: int
    metric: str
    higher_is_better: bool
    device: str = "cpu"


@dataclass(frozen=True, kw_only=True)
class ThreadsChosen:
    """The first step was timed with one thread and with all threads."""

    step: int
    threads: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class StepDone:
    """One update of the weights. It is sent some steps late, when loss and norm are read."""

    step: int  # from 1
    epoch: float  # passes over the data so far
    progress: float  # completed fraction of the run
    loss: float  # mean over all tokens of the step
    tokens: int  # number of tokens in the mean, over all processes
    norm: float  # norm of the gradient, before clipping; 0 if it overflowed in float16 and the step was skipped
    rate: float  # learning rate
    seconds: float  # since the start of the run, including validation
    parts: Mapping[str, float]  # terms of the loss in process 0, if there are several
    wait: float = 0.0  # seconds of this step spent on reading its batches, in process 0
    inputs: int = 0  # source and target tokens that process 0 has read, without padding


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A validation by free decoding."""

    step: int
    metrics: Mapping[str, float]
    samples: tuple[Answer, ...]
    seconds: float  # duration
    share: float  # fraction of the time so far spent on validation


@dataclass(frozen=True, kw_only=True)
class Improved:
    """The main metric is better than in all earlier validations, or equal with a better next metric."""

    step: int
    metric: str
    value: float
    before: float | None  # the best so far; None at the first validation


@dataclass(frozen=True, kw_only=True)
class Probed:
    """Measurements of the model by probes, on the batch of the latest step."""

    step: int
    readings: Readings
    seconds: float  # duration


@dataclass(frozen=True, kw_only=True)
class Checkpointed:
    """A checkpoint is on disk, from which the run can resume."""

    step: int
    folder: Path
    seconds: float  # duration


@dataclass(frozen=True, kw_only=True)
class Warned:
    """A warning to the user that does not stop the run."""

    step: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """Training has stopped; the model is saved and scored next."""

    step: int
    reason: StopReason
    text: str


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """The model is saved and is being scored."""

    step: int
    name: str  # name of the set: dev or test
    done: int  # number of scored examples
    total: int


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The run is finished and its folder is complete."""

    step: int
    best_step: int
    metrics: Mapping[str, float]  # metrics of the saved weights on the whole validation set
    test: Mapping[str, float]  # on the test set; empty without one
    seconds: float
    share: float  # fraction of the time spent on validation
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

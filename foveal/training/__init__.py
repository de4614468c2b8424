"""Training: one loop on torch.distributed, checkpoints, schedules, events.

    outcome = fit(task, task.batches(source, budget=2048), dev, TrainingSpec(steps=2000), "runs/x")

The folder `runs/x` is then a bundle that answers, with the run's log, scores, samples and curves. The
same call after a crash goes on where the last checkpoint was.
"""

from ._choices import (
    Choice as Choice,
    Planned as Planned,
    chosen as chosen,
    load_plan as load_plan,
)
from ._curves import draw_curves as draw_curves
from ._display import Display as Display
from ._events import (
    Answer as Answer,
    Checkpointed as Checkpointed,
    Evaluated as Evaluated,
    Event as Event,
    Failed as Failed,
    Finished as Finished,
    Improved as Improved,
    Listener as Listener,
    Probed as Probed,
    Scoring as Scoring,
    Started as Started,
    StepDone as StepDone,
    Stopped as Stopped,
    ThreadsChosen as ThreadsChosen,
    Warned as Warned,
)
from ._fit import Outcome as Outcome, fit as fit, forget as forget
from ._group import Group as Group, process_group as process_group
from ._held_out import Divided as Divided, hold_out as hold_out
from ._inputs import (
    Input as Input,
    Inputs as Inputs,
    check_inputs as check_inputs,
    inputs_of as inputs_of,
    write_inputs as write_inputs,
)
from ._lock import Lock as Lock, locked as locked
from ._log import LogWriter as LogWriter, read_log as read_log
from ._loop import CHECKPOINTS as CHECKPOINTS
from ._outputs import sample_sources as sample_sources, scores_of as scores_of
from ._plan import plan as plan
from ._probe import Probe as Probe
from ._run import Run as Run
from ._schedule import rate_share as rate_share
from ._spec import TrainingSpec as TrainingSpec
from ._tensorboard import TensorBoardWriter as TensorBoardWriter

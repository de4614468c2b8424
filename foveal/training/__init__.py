"""Training: one loop on torch.distributed, checkpoints, schedules, events.

    outcome = fit(task, task.batches(source, budget=2048), dev, TrainingSpec(steps=2000), "runs/x")

The folder `runs/x` is then a bundle that you can predict with. It also contains the log, scores, samples and curves of
the run. After a crash, the same call resumes from the last checkpoint.
"""

from ._fit import Outcome as Outcome, fit as fit
from ._group import process_group as process_group
from ._run import Run as Run
from ._spec import TrainingSpec as TrainingSpec
from .events._display import Display as Display
from .events._events import (
    Checkpointed as Checkpointed,
    Evaluated as Evaluated,
    Event as Event,
    Failed as Failed,
    Finished as Finished,
    Improved as Improved,
    Listener as Listener,
    Started as Started,
    StepDone as StepDone,
    Stopped as Stopped,
    Warned as Warned,
)
from .events._log import LogWriter as LogWriter, read_log as read_log
from .events._tensorboard import TensorBoardWriter as TensorBoardWriter

"""The settings of training: length, batches, optimizer, schedule, validation, checkpoints, seed.

A run ends when the first of its limits `epochs`, `steps` and `minutes` is reached; set at least one. Steps and epochs
do not depend on the clock: without `minutes`, the same seed gives the same weights. With `minutes`, the schedule ends
when the time is up, and two runs differ with the load of the machine.
"""

from dataclasses import dataclass
from typing import Literal

from ..errors import SpecError
from ..specs import check, setting

Schedule = Literal["constant", "linear", "cosine", "inverse_square_root"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSpec:
    """All settings of a training run besides task and data.

    Examples:
        >>> spec = TrainingSpec(steps=2000, learning_rate=2e-3, warmup_steps=100)
        >>> spec.schedule, spec.clip_norm
        ('linear', 1.0)
    """

    epochs: float | None = setting(None, "number of epochs", above=0)
    steps: int | None = setting(None, "number of optimizer steps", at_least=1)
    minutes: float | None = setting(
        None,
        "time limit for training, validation and scoring; such a run is not exactly reproducible",
        above=0,
    )
    batch_tokens: int = setting(
        2048, "batch size in positions, over all processes: source, target and padding", at_least=1
    )
    batch_size: int | None = setting(
        None, "batch size in examples, over all processes, instead of batch_tokens", at_least=1
    )
    accumulate: int = setting(
        1, "number of batches whose gradients are accumulated for one step", at_least=1
    )
    optimizer: Literal["adam", "adamw"] = setting(
        "adamw",
        "optimizer: adam adds weight decay to the gradient, adamw decouples it from the gradient",
    )
    learning_rate: float = setting(1e-3, "maximum learning rate of the schedule", above=0)
    betas: tuple[float, float] = setting(
        (0.9, 0.999),
        "decay rates of the running means of the gradient and its square",
        at_least=0,
        at_most=1,
    )
    epsilon: float = setting(1e-8, "term added to the denominator for numerical stability", above=0)
    weight_decay: float = setting(0.0, "weight decay coefficient", at_least=0)
    warmup_steps: int = setting(0, "number of steps of linear learning rate warmup", at_least=0)
    schedule: Schedule = setting("linear", "learning rate schedule after warmup")
    final_lr_ratio: float = setting(
        0.0,
        "final learning rate as a fraction of the maximum, for a linear or cosine schedule",
        at_least=0,
        at_most=1,
    )
    clip_norm: float | None = setting(
        1.0, "maximum gradient norm; longer gradients are clipped", above=0
    )
    bf16: bool = setting(False, "compute the loss with bfloat16 autocast")
    fp16: bool = setting(
        False, "compute the loss with float16 autocast and a loss scale, for GPUs without bfloat16"
    )
    scheduled_sampling: float = setting(
        0.0,
        "scheduled sampling: fraction of decoder inputs that are predictions, rising from 0 to this "
        "value during the run",
        at_least=0,
        at_most=1,
    )
    ema_decay: float = setting(
        0.0,
        "decay of the exponential moving average of the weights; 0: no average",
        at_least=0,
        at_most=1,
    )
    patience: int | None = setting(
        None,
        "early stopping: number of validations without a better score before the run stops",
        at_least=1,
    )
    evaluate_every: int | None = setting(
        None,
        "steps between validations; none: chosen by their cost, see the documentation",
        at_least=1,
    )
    validation_size: int = setting(
        1000,
        "number of examples for a validation, evenly spaced; the last validation uses all",
        at_least=1,
    )
    checkpoint_seconds: float = setting(30.0, "seconds between checkpoints", at_least=0)
    log_every: int = setting(10, "steps between log entries of loss and gradient norm", at_least=1)
    threads: int | None = setting(
        None,
        "threads per process; none: the setting of torch, which `foveal fit` measures",
        at_least=1,
    )
    seed: int = setting(
        1, "random seed of initial weights, data order and dropout", at_least=0, at_most=2**63 - 1
    )


def check_training(spec: TrainingSpec) -> None:
    """Raise `SpecError` unless the fields are within their limits and fit each other."""
    check(spec)
    if spec.epochs is None and spec.steps is None and spec.minutes is None:
        raise SpecError(
            "TrainingSpec: expected at least one of epochs, steps and minutes, got none; the run "
            "would never end. For example, set steps=2000."
        )
    if spec.ema_decay >= 1 or max(spec.betas) >= 1:
        raise SpecError(
            f"TrainingSpec: ema_decay and betas must be below 1, got ema_decay={spec.ema_decay} and "
            f"betas={spec.betas}; a mean with decay 1 never changes. For example, use 0.999."
        )
    if spec.bf16 and spec.fp16:
        raise SpecError(
            "TrainingSpec: expected at most one of bf16 and fp16, got both. Use bf16, which needs no "
            "loss scale; fp16 is for GPUs without bfloat16."
        )
    if spec.schedule == "inverse_square_root" and spec.warmup_steps == 0:
        raise SpecError(
            "TrainingSpec: schedule inverse_square_root needs warmup_steps of at least 1, got 0. For "
            "example, set warmup_steps=1000."
        )

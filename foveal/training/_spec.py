"""How to train: length, batches, optimizer, schedule, validation, checkpoints, seed.

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

    epochs: float | None = setting(None, "readings of the training data", above=0)
    steps: int | None = setting(None, "updates of the weights", at_least=1)
    minutes: float | None = setting(
        None,
        "time for training, validation and scoring; with it a run cannot be repeated exactly",
        above=0,
    )
    batch_tokens: int = setting(
        2048, "positions in a batch over all processes: source, target and padding", at_least=1
    )
    batch_size: int | None = setting(
        None, "examples in a batch of all processes, instead of batch_tokens", at_least=1
    )
    accumulate: int = setting(1, "batches whose gradients are summed into one update", at_least=1)
    optimizer: Literal["adam", "adamw"] = setting(
        "adamw", "adam adds weight decay to the gradient, adamw takes it from the weights"
    )
    learning_rate: float = setting(1e-3, "the highest rate of the schedule", above=0)
    betas: tuple[float, float] = setting(
        (0.9, 0.999), "decay of the means of the gradient and of its square", at_least=0, at_most=1
    )
    epsilon: float = setting(1e-8, "added to the root of the mean square", above=0)
    weight_decay: float = setting(0.0, "pull of the weights towards 0", at_least=0)
    warmup_steps: int = setting(0, "updates over which the rate rises from 0", at_least=0)
    schedule: Schedule = setting("linear", "how the rate falls after that")
    final_lr_ratio: float = setting(
        0.0, "share of the rate at the end of a linear or cosine schedule", at_least=0, at_most=1
    )
    clip_norm: float | None = setting(1.0, "longest gradient; longer ones are shortened", above=0)
    bf16: bool = setting(False, "compute the loss in bfloat16 where torch thinks it safe")
    scheduled_sampling: float = setting(
        0.0,
        "share of a decoder's inputs that are its own guesses, rising from 0 to this over the run",
        at_least=0,
        at_most=1,
    )
    ema_decay: float = setting(
        0.0,
        "decay, for each update, of a running mean of the weights; 0: none",
        at_least=0,
        at_most=1,
    )
    patience: int | None = setting(
        None, "validations without a better score before the run stops", at_least=1
    )
    evaluate_every: int | None = setting(
        None, "updates between validations; none: by cost, see the documentation", at_least=1
    )
    validation_size: int = setting(
        1000, "examples for a validation, evenly spaced; all of them at the end", at_least=1
    )
    checkpoint_seconds: float = setting(30.0, "time between checkpoints", at_least=0)
    log_every: int = setting(10, "updates between readings of loss and gradient norm", at_least=1)
    threads: int | None = setting(
        None,
        "threads of each process; none: as torch is set, which `foveal fit` measures",
        at_least=1,
    )
    seed: int = setting(
        1, "of weights, order of examples and dropout", at_least=0, at_most=2**63 - 1
    )


def check_training(spec: TrainingSpec) -> None:
    """Raise `SpecError` unless the fields are within their limits and fit each other."""
    check(spec)
    if spec.epochs is None and spec.steps is None and spec.minutes is None:
        raise SpecError(
            "TrainingSpec: epochs, steps and minutes are all none, expected at least one, or the run "
            "would never end. Set steps=2000, say."
        )
    if spec.ema_decay >= 1 or max(spec.betas) >= 1:
        raise SpecError(
            f"TrainingSpec: ema_decay and betas must be below 1, got ema_decay={spec.ema_decay} and "
            f"betas={spec.betas}; a mean with decay 1 never changes. Take 0.999, say."
        )
    if spec.schedule == "inverse_square_root" and spec.warmup_steps == 0:
        raise SpecError(
            "TrainingSpec: schedule inverse_square_root falls with sqrt(warmup_steps / step), "
            "got warmup_steps=0. Set warmup_steps=1000, say."
        )

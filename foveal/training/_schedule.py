"""The learning rate as a fraction of its maximum.

    share = warm(n) * fall(n, p),    warm(n) = min(1, n / w)

    constant              fall = 1
    linear                fall = 1 - (1 - l) p
    cosine                fall = l + (1 - l) (1 + cos(pi p)) / 2
    inverse square root   fall = min(1, sqrt(w / n))

where n = 1, 2, ... counts updates, w is `warmup_steps`, l is `final_lr_ratio`, and p in [0, 1] is the completed
fraction of the run before update n: the largest of the fractions of steps, epochs and minutes.

References: Goyal et al. 2017 (warm-up); Loshchilov and Hutter 2017 (cosine); Vaswani et al. 2017 (inverse square root).
"""

import math
from typing import assert_never

from ._spec import TrainingSpec


def rate_share(spec: TrainingSpec, step: int, progress: float) -> float:
    """Return the learning rate of an update as a fraction of its maximum.

    Args:
        spec: Warm-up, schedule and final rate.
        step: The number of the update, from 1.
        progress: The completed fraction of the run, 0 to 1.

    Returns:
        A factor for the learning rate, from 0 to 1.

    Examples:
        >>> rate_share(TrainingSpec(steps=100, warmup_steps=10), step=5, progress=0.0)
        0.5
        >>> rate_share(TrainingSpec(steps=100), step=26, progress=0.25)
        0.75
    """
    warm = min(1.0, step / spec.warmup_steps) if spec.warmup_steps else 1.0
    return warm * _fall(spec, step, min(1.0, progress))


def _fall(spec: TrainingSpec, step: int, progress: float) -> float:
    last = spec.final_lr_ratio
    match spec.schedule:
        case "constant":
            return 1.0
        case "linear":
            return 1.0 - (1.0 - last) * progress
        case "cosine":
            return last + (1.0 - last) * (1.0 + math.cos(math.pi * progress)) / 2
        case "inverse_square_root":
            return min(1.0, math.sqrt(spec.warmup_steps / step))
        case never:
            assert_never(never)

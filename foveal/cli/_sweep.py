"""`foveal sweep`: many trials of a run with other settings; bad trials stop early, and the best model is saved.

The work is in `_sweep_job`, which imports more packages than --help needs.
"""

import os
import re
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction, arg

from ..errors import SpecError
from ..planning._drafting import Asked, given_settings

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def command(
    train: Positional[tuple[str, ...]] = (),
    /,
    *,
    dev: tuple[str, ...] = (),
    test: tuple[str, ...] = (),
    out: Path = Path("runs/sweep"),
    trials: int = 20,
    budget: str | None = None,
    over: UseAppendAction[tuple[str, ...]] = (),
    recipe: str | None = None,
    settings_given: Annotated[UseAppendAction[tuple[str, ...]], arg(name="set")] = (),
    seed: int | None = None,
    workers: int | None = None,
    fresh: bool = False,
    device: str = "auto",
) -> None:
    """Train with many settings on a Ray cluster, stop bad trials early, and keep the best model.

    The first trial has the settings of `foveal fit` and always runs to the end, so the best trial is never worse
    than it on the validation set. After an interruption, the same command resumes the sweep.

    Args:
        train: Training files, as for `foveal fit`.
        dev: Validation files, to compare trials. Defaults to a tenth of the training examples.
        test: Test files, for the score at the end. They do not influence the selection.
        out: The folder of the sweep. Its folder best is a model for other commands; sweep.html compares the trials.
        trials: The number of trials.
        budget: Time limit, such as 30m, 2h or 1h30m.
        over: Vary this setting, as path=low..high or path=value,value. Repeat the option for more settings.
            Defaults to learning rate, batch size, weight averaging, widths, dropout, label smoothing and
            attention, if the task has them.
        recipe: A run defined in Python, as file.py:function, instead of training files.
        settings_given: Change one setting in all trials. Repeat the option for more settings.
        seed: The random seed of the sampled settings, and of every trial.
        workers: The number of concurrent trials. Defaults to the number of cores of this machine.
        fresh: Start again if the output folder already has a sweep, instead of resuming it.
        device: The device of the trials: auto, cpu or cuda. auto uses the GPUs of the cluster if it has some; concurrent
            trials share them.
    """
    seconds = None if budget is None else seconds_of(budget)
    from ._sweep_job import sweep  # noqa: PLC0415 - an extra

    given = given_settings(settings_given, attention=None, minutes=None, seed=seed, threads=None)
    asked = Asked(train, dev, test, out, recipe, given)
    sweep(asked, over, trials, seconds, workers or os.cpu_count() or 1, device, fresh=fresh)


def seconds_of(text: str) -> float:
    """Parse a duration.

    Args:
        text: Numbers with the units h, m and s.

    Returns:
        The duration in seconds.

    Raises:
        SpecError: The text is not a duration.

    Examples:
        >>> seconds_of("30m"), seconds_of("1h30m"), seconds_of("90s")
        (1800.0, 5400.0, 90.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise SpecError(
            f"--budget: expected a duration such as 30m, 2h or 1h30m, got {text!r}. Use h, m and s as units."
        )
    return sum(float(number) * _UNITS[unit] for number, unit in parts)

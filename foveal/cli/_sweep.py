"""`foveal sweep`: many trials of a run with other settings, the bad ones stopped early, the best kept.

The work is in `_sweep_job`, which needs more packages than --help does.
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
) -> None:
    """Train with many settings on a Ray cluster, stop what does badly early, and keep the best model.

    The first trial is what `foveal fit` would do, and always comes to its end: on the validation set the
    best is never worse. Interrupted or killed, the same command goes on.

    Args:
        train: files to learn from, as for `foveal fit`.
        dev: files that trials are compared on; without, a tenth of the training examples is set apart.
        test: files for the score at the end; they choose nothing.
        out: the folder of the sweep: best is a model that other commands take, sweep.html compares trials.
        trials: how many.
        budget: stop after so long, as in 30m, 2h or 1h30m.
        over: vary this setting and no others but those that are given like it: path=low..high, or
            path=value,value. By default learning rate, size of batches, averaging, widths, dropout, label
            smoothing and attention, as far as the task has them.
        recipe: a run written down, as file.py:function, instead of files.
        settings_given: one setting as path=value, the same in all trials; may be repeated.
        seed: of the drawing of settings, and of every trial.
        workers: trials at a time; by default as many as this machine has cores.
        fresh: start again in a folder that has a sweep.
    """
    seconds = None if budget is None else seconds_of(budget)
    from ._sweep_job import sweep  # noqa: PLC0415 - an extra

    given = given_settings(settings_given, attention=None, minutes=None, seed=seed, threads=None)
    asked = Asked(train, dev, test, out, recipe, given)
    sweep(asked, over, trials, seconds, workers or os.cpu_count() or 1, fresh=fresh)


def seconds_of(text: str) -> float:
    """How long a user means.

    >>> seconds_of("30m"), seconds_of("1h30m"), seconds_of("90s")
    (1800.0, 5400.0, 90.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise SpecError(f"--budget {text}: expected a time, as in 30m, 2h or 1h30m.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)

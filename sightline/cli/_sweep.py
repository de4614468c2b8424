"""`sightline sweep`: many trials of a run with other settings, the bad ones stopped early, the best kept."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, UseAppendAction, arg

from ..errors import SpecError
from ..scale import PLAN, Dimension, Sweep, given_dimension, usual_dimensions
from ..scale.cluster import Ended, joined, run_trials
from ..training import Planned, check_inputs, locked, write_inputs
from ._draft import Draft, refuse_foreign
from ._outcome import say_outcome
from ._planning import (
    given_settings,
    plan_from_files,
    plan_from_recipe,
    say_findings,
    whole_path,
    with_all_given,
)

_INTERRUPTED = 130  # the exit status that shells have for it
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

    The first trial is what `sightline fit` would do, and always comes to its end: on the validation set the
    best is never worse. Interrupted or killed, the same command goes on.

    Args:
        train: files to learn from, as for `sightline fit`.
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
    console, seconds = Console(highlight=False), None if budget is None else seconds_of(budget)
    given = given_settings(settings_given, attention=None, minutes=None, seed=seed)
    draft = (
        Draft(plan_from_recipe(recipe))
        if recipe
        else plan_from_files(console, train, dev, test, out, given)
    )
    draft = with_all_given(draft, given, recipe=recipe)
    draft.check_model()
    if recipe is None:
        say_findings(console, draft)
    sweep = Sweep(
        planned=draft.planned,
        dimensions=tuple(_dimensions(draft.planned, over)),
        trials=trials,
        budget=seconds,
        out=out,
    )
    with locked(out):
        _begin(sweep, draft, fresh=fresh)
        if not sweep.is_over:
            number = workers or os.cpu_count() or 1
            names = ", ".join(dimension.name for dimension in sweep.dimensions)
            console.print(
                f"{trials} trials, {number} at a time, over {names}", markup=False, soft_wrap=True
            )
            with joined(num_cpus=number):
                if not run_trials(sweep, number, _say):
                    sys.stderr.write("interrupted; the same command goes on from here\n")
                    sys.exit(_INTERRUPTED)
            sweep.finish()
    best = sweep.best()
    console.print(f"the best is trial {best.number}", markup=False)
    for name, value in best.settings.items():
        console.print(f"  {name} {value}", markup=False, soft_wrap=True)
    say_outcome(console, out / "best")
    console.print(f"{out / 'sweep.html'} compares all trials", markup=False, soft_wrap=True)


def _begin(sweep: Sweep, draft: Draft, *, fresh: bool) -> None:
    """Write the sweep into its folder, if the folder has none, or the same one of the same files."""
    refuse_foreign(sweep.out, (PLAN,))
    inputs = draft.inputs()
    if not fresh:
        draft.check_given()
        check_inputs(sweep.out, inputs)
    sweep.begin(fresh=fresh)
    draft.save_parts()
    write_inputs(sweep.out, inputs)


def seconds_of(text: str) -> float:
    """How long a user means.

    >>> seconds_of("30m"), seconds_of("1h30m"), seconds_of("90s")
    (1800.0, 5400.0, 90.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise SpecError(f"--budget {text}: expected a time, as in 30m, 2h or 1h30m.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _dimensions(planned: Planned, over: Sequence[str]) -> list[Dimension]:
    run = planned.run
    if not over:
        fixed = [choice.path for choice in planned.choices if choice.origin == "command"]
        return usual_dimensions(run, fixed)
    given = list[Dimension]()
    for text in over:
        path, sign, values = text.partition("=")
        if not sign:
            raise SpecError(f"--over {text}: expected path=low..high or path=value,value")
        given.append(given_dimension(run, whole_path(run, path), values))
    return given


def _say(ended: Ended) -> None:
    """A line for every trial that has ended."""
    trial = ended.trial
    score = "" if trial.score is None else f", {trial.score:.4g}"
    after = "" if trial.status == "finished" else f" after {trial.progress:.0%}"
    sys.stderr.write(
        f"[{ended.number}/{ended.of}] trial {trial.number}: {trial.status}{after}{score}\n"
    )

"""A sweep: trials of a run with other settings, each in a separate folder, and the best of them.

    plan.json     the search space, and the settings of every trial
    trials/01     the unchanged run; 02, ...: with other settings; all folders as `fit` writes them
    best          the best finished trial, ready to predict
    sweep.json    all trials, best first
    sweep.html    the same as a page

This module does not train: `foveal.scale.cluster.run_trials` does.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import SpecError, ValueRangeError
from ..planning._choices import Choice, Planned, chosen, load_plan
from ..specs import to_data
from ..specs._settings import outside_specs
from ..training._fit import delete_checkpoints
from ._space import Dimension, drawn, values_of, with_values
from ._storage import read_json, write_json
from ._sweep_page import sweep_page
from ._trials import Measure, Trial, read_measure, read_trial

BEST, ENGINE = "best", "ray"  # `ray` is the folder of Tune's own state
PLAN = "plan.json"
_TABLE, _PAGE = "sweep.json", "sweep.html"
_TRIALS = "trials"
_CHECKPOINTS = "checkpoints"
_AT_ONCE = 1e-9  # minutes: a resumed run with this budget ends at once


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep: the run, the search space and the output folder.

    Args:
        planned: The default run, and trial 1.
        dimensions: The dimensions of the search space.
        trials: The number of trials.
        budget: The total time in seconds; None for no limit.
        out: The folder of the sweep.
    """

    planned: Planned
    dimensions: tuple[Dimension, ...]
    trials: int
    budget: float | None
    out: Path

    @property
    def _also(self) -> tuple[type, ...]:
        """Return the spec classes of the run that are not from this package."""
        return outside_specs(self.planned.run)

    def begin(self, *, fresh: bool = False) -> None:
        """Write the plan of every trial, or resume the same sweep in the folder.

        Args:
            fresh: Delete an existing sweep in the folder, after the new one has been validated.

        Raises:
            SpecError: The run has no validation set, no setting is left to vary, or the folder contains another sweep.
            ValueRangeError: The number of trials is less than 1.
        """
        if self.planned.run.dev is None:
            raise SpecError(
                "sweep: expected a validation set to compare trials, got none. Add --dev."
            )
        if self.trials < 1:
            raise ValueRangeError(
                f"sweep: trials must be at least 1, got {self.trials}. Increase --trials."
            )
        if self.trials > 1 and not self.dimensions:
            raise SpecError(
                "sweep: expected at least one setting to vary, got none. Set fewer settings, or add "
                "--over path=low..high."
            )
        if fresh:
            self.clear()
        there, wanted = read_json(str(self.out / PLAN)), self._plan()
        if there is not None and there != wanted:
            parts = [name for name in wanted if there.get(name) != wanted[name]]
            raise SpecError(
                f"{self.out} contains another sweep: it differs in {', '.join(parts)}. To resume it, "
                f"run its original command; otherwise use another --out, or --fresh to start again."
            )
        if there is None:
            for number, values in enumerate(wanted["settings"], start=1):
                self._trial_plan(number, values).save(self.folder(number))
            write_json(str(self.out / PLAN), wanted)

    def clear(self) -> None:
        """Delete the sweep in the folder."""
        for name in (PLAN, _TABLE, _PAGE):
            (self.out / name).unlink(missing_ok=True)
        for name in (_TRIALS, BEST, ENGINE):
            shutil.rmtree(self.out / name, ignore_errors=True)

    def _plan(self) -> dict[str, Any]:
        seed = self.planned.run.training.seed
        plan = {
            "trials": self.trials,
            "budget": self.budget,
            "dimensions": [asdict(dimension) for dimension in self.dimensions],
            "settings": drawn(self.dimensions, self.trials, seed),
            "run": to_data(self.planned.run),
        }
        return json.loads(json.dumps(plan))  # normalized as after a round trip through the file

    def _trial_plan(self, number: int, values: dict[str, str]) -> Planned:
        choices: Sequence[Choice] = self.planned.choices
        for dimension in self.dimensions:
            for path in dimension.paths if dimension.name in values else ():
                choices = chosen(choices, path, "command", f"trial {number} of a sweep")
        return Planned(with_values(self.planned.run, self.dimensions, values), tuple(choices))

    def folder(self, number: int) -> Path:
        """Return the folder of a trial, counted from 1."""
        return trial_folder(self.out, number)

    def trial(self, number: int) -> Trial:
        """Return the state of a trial."""
        folder = self.folder(number)
        return read_trial(
            folder, number, values_of(load_plan(folder, also=self._also).run, self.dimensions)
        )

    def measure(self) -> Measure:
        """Return the metric that ranks the trials."""
        for number in range(1, self.trials + 1):
            if (found := read_measure(self.folder(number))) is not None:
                return found
        raise ValueRangeError(
            f"{self.out}: the time limit ended before the first trial. Use a larger --budget, with --fresh."
        )

    @property
    def is_over(self) -> bool:
        """Return whether all trials have ended."""
        return (self.out / _TABLE).is_file()

    def best(self) -> Trial:
        """Return the best trial of a finished sweep."""
        return self.trial(read_json(str(self.out / _TABLE))["best"])

    def finish(self) -> None:
        """Save the best model, the table and the page, after the last training."""
        measure = self.measure()
        trials = measure.ranked([self.trial(number) for number in range(1, self.trials + 1)])
        best = trials[0]
        self._save_best(best)
        (self.out / _PAGE).write_text(
            sweep_page(self.out.resolve().name, measure, self.dimensions, trials), encoding="utf-8"
        )
        data = {
            "metric": measure.name,
            "higher_is_better": measure.higher_is_better,
            "best": best.number,
            "seconds": round(sum(trial.seconds for trial in trials), 3),
            "dimensions": [asdict(dimension) for dimension in self.dimensions],
            "trials": [trial.to_data() for trial in trials],
        }
        write_json(str(self.out / _TABLE), data)
        for trial in trials:
            # No run resumes from these, and they are large.
            delete_checkpoints(self.folder(trial.number))

    def _save_best(self, trial: Trial) -> None:
        """Copy the folder of the best trial. A stopped trial is scored and saved from its last checkpoint."""
        source, target = self.folder(trial.number), self.out / BEST
        shutil.rmtree(target, ignore_errors=True)
        if trial.status == "finished":
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(_CHECKPOINTS))
            return
        if trial.status != "stopped" or not any((source / _CHECKPOINTS).glob("*")):
            why = trial.text or "no trial finished or wrote a checkpoint within the time limit"
            raise ValueRangeError(
                f"{self.out}: no trial has a model: {why}. Start again with --fresh, and a larger "
                f"--budget or other settings."
            )
        shutil.copytree(source, target)
        planned = load_plan(target, also=self._also)
        run = planned.run
        replace(run, training=replace(run.training, minutes=_AT_ONCE)).fit(target)
        planned.save(target)
        delete_checkpoints(target)


def trial_folder(out: Path, number: int) -> Path:
    """Return the folder of a trial, relative to the folder of its sweep."""
    return out / _TRIALS / f"{number:02d}"

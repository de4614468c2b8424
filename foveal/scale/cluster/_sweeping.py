"""Trials of a sweep, scheduled by Ray Tune, with early stopping by ASHA.

    ASHA: at 12 % and 36 % of its run a trial continues only if it is among the best third so far

A trial runs the training loop in its folder, and reports every validation. A worker that dies is restarted
and resumes from the trial's checkpoint; an interrupted or killed sweep resumes from Tune's saved state.
Reference: Li et al. 2020, a system for massively parallel hyperparameter tuning.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

from ray import tune
from ray.tune import Callback, FailureConfig, RunConfig, TuneConfig, Tuner
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.schedulers import ASHAScheduler, TrialScheduler
from typing_extensions import override

from ...errors import FovealError
from ...inspection import vital_signs
from ...planning._choices import load_plan
from ...specs._files import specs_in
from ...training import Evaluated, Event, Started, StepDone
from .._sweep import ENGINE, Sweep, trial_folder
from .._trials import STOPPED, Trial, is_finished
from ._gpus import gpu_share

_MOST_FAILURES = 3  # per trial, for lost workers; errors in training are not retried
# Percentages of a run: no trial is stopped before the first. Each is three times the previous one.
_FIRST_RUNG, _FACTOR, _WHOLE = 12, 3, 100
_NUMBER, _SHARE, _GOODNESS = "trial", "share", "goodness"


class Ended(NamedTuple):
    """The end of a trial, with the number of ended trials."""

    trial: Trial
    number: int
    of: int


def run_trials(
    sweep: Sweep,
    workers: int,
    told: Callable[[Ended], None],
    *,
    specs: Path | None = None,
    device: str = "cpu",
) -> bool:
    """Run or resume all trials of a sweep.

    Args:
        sweep: The sweep, after `begin`.
        workers: The number of concurrent trials, with one core each.
        told: A function of a module that receives every ended trial.
        specs: A Python file with the parts of the run that are not from foveal, which every worker runs.
        device: The device of the trials: auto, cpu or cuda. Concurrent trials share the GPUs of the cluster.

    Returns:
        False if the sweep was interrupted.
    """
    folder = sweep.out.resolve()
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"  # the training loop writes its own log
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # the command prints its own messages
    share = gpu_share(device, workers)
    used = "cuda" if share else "cpu"
    trainable = tune.with_resources(
        tune.with_parameters(
            _trial, out=str(folder), working=str(Path.cwd()), specs=specs, device=used
        ),
        {"cpu": 1, "gpu": share},
    )
    state = folder / ENGINE
    if any(state.glob("experiment_state-*.json")) and Tuner.can_restore(str(state)):
        tuner = Tuner.restore(str(state), trainable=trainable, resume_errored=True)
    else:
        tuner = Tuner(
            trainable,
            param_space={_NUMBER: tune.grid_search(list(range(1, sweep.trials + 1)))},
            tune_config=TuneConfig(
                metric=_GOODNESS,
                mode="max",
                max_concurrent_trials=workers,
                scheduler=_Asha(sweep),
                time_budget_s=sweep.budget,
                reuse_actors=True,
            ),
            run_config=RunConfig(
                name=ENGINE,
                storage_path=str(folder),
                failure_config=FailureConfig(max_failures=_MOST_FAILURES),
                callbacks=[_Teller(sweep, told)],
                verbose=0,
            ),
        )
    with _stopping() as was_stopped:
        tuner.fit()
        return not was_stopped()


class _StoppedError(Exception):
    """Raised in a trial that the sweep stops early."""


def _trial(
    config: dict[str, Any], *, out: str, working: str, specs: Path | None, device: str
) -> None:
    """Run a trial in a worker."""
    os.chdir(working)  # relative paths refer to the command's working folder
    folder = trial_folder(Path(out), config[_NUMBER])
    if is_finished(folder):
        return  # Tune was killed before it saved the result
    try:
        run = load_plan(folder, also=specs_in(specs)).run
        run.fit(folder, listeners=(_Reporter(),), probes=(vital_signs,), device=device)
    except _StoppedError:
        sys.exit(0)  # the exit that Tune expects
    except FovealError:
        return  # the log contains the error, and a retry would fail again


@final
class _Reporter:
    """A listener that reports every validation to Tune, and ends the run when Tune decides so."""

    def __init__(self) -> None:
        self._sign, self._metric, self._share = 1.0, "", 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case Started():
                self._sign, self._metric = 1.0 if event.higher_is_better else -1.0, event.metric
            case StepDone():
                self._share = event.progress
            case Evaluated():
                goodness = self._sign * event.metrics[self._metric]
                try:
                    tune.report({_SHARE: _WHOLE * self._share, _GOODNESS: goodness})
                except SystemExit:
                    raise _StoppedError(STOPPED) from None
            case _:
                pass


@final
class _Asha(ASHAScheduler):
    """ASHA that never stops the default trial, the baseline of the sweep, or a trial that has finished anyway.

    It also restores the results of trials from before a restart, which Tune does not save.
    """

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(
            time_attr=_SHARE,
            max_t=_WHOLE,
            grace_period=_FIRST_RUNG,
            reduction_factor=_FACTOR,
            stop_last_trials=False,
        )
        self._sweep = sweep

    @override
    def on_trial_add(self, tune_controller: Any, trial: TuneTrial) -> None:
        super().on_trial_add(tune_controller, trial)
        done = self._sweep.trial(trial.config[_NUMBER])
        if done.validations:
            measure = self._sweep.measure()
            for share, score in done.validations:
                result = {_SHARE: _WHOLE * share, _GOODNESS: measure.goodness(score)}
                super().on_trial_result(tune_controller, trial, result)

    @override
    def on_trial_result(self, tune_controller: Any, trial: TuneTrial, result: dict) -> str:
        decision = super().on_trial_result(tune_controller, trial, result)
        is_spared = trial.config[_NUMBER] == 1 or result.get(_SHARE, 0.0) >= _WHOLE
        return TrialScheduler.CONTINUE if is_spared else decision


@final
class _Teller(Callback):
    """A callback that reports ended trials."""

    def __init__(self, sweep: Sweep, told: Callable[[Ended], None]) -> None:
        self._sweep, self._told = sweep, told

    @override
    def on_trial_complete(
        self, iteration: int, trials: list, trial: TuneTrial, **info: Any
    ) -> None:
        self._tell(trials, trial)

    @override
    def on_trial_error(self, iteration: int, trials: list, trial: TuneTrial, **info: Any) -> None:
        self._tell(trials, trial)

    def _tell(self, trials: list[TuneTrial], trial: TuneTrial) -> None:
        number = sum(other.is_finished() for other in trials if other is not trial) + 1
        found = self._sweep.trial(trial.config[_NUMBER])
        self._told(Ended(found, number, self._sweep.trials))


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """Handle SIGTERM like Ctrl-C; yields a function that returns whether either signal arrived.

    Tune replaces the current signal handler by its own, and restores the current one when a signal arrives: the
    restored handler shows that a signal came.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    own = signal.default_int_handler
    before = signal.signal(signal.SIGINT, own)
    before_term = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield lambda: signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, before_term)

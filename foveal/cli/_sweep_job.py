"""The work of `foveal sweep`: plans a sweep, runs its trials on a cluster, and saves the best."""

import sys
from collections.abc import Sequence

from ..errors import SpecError
from ..planning._choices import Planned
from ..planning._draft import Draft, refuse_foreign
from ..planning._drafting import Asked, draft_run, specs_file, whole_path
from ..scale._space import Dimension, given_dimension, usual_dimensions
from ..scale._sweep import PLAN, Sweep
from ..scale.cluster._joining import ray_cluster
from ..scale.cluster._sweeping import Ended, run_trials
from ..training.checkpoints._inputs import check_inputs, write_inputs
from ..training.checkpoints._lock import locked
from ._outcome import say_outcome
from ._speech import explaining, is_quiet

_INTERRUPTED = 130  # the exit status of shells for an interrupt


def sweep(
    asked: Asked,
    over: Sequence[str],
    trials: int,
    seconds: float | None,
    workers: int,
    device: str,
    *,
    fresh: bool,
) -> None:
    """Run the missing trials, this many at a time, and print the best."""
    console, out = explaining(), asked.out
    draft = draft_run(console, asked)
    planned = Sweep(
        planned=draft.planned,
        dimensions=tuple(_dimensions(draft.planned, over)),
        trials=trials,
        budget=seconds,
        out=out,
    )
    with locked(out):
        _begin(planned, draft, fresh=fresh)
        if not planned.is_over:
            names = ", ".join(dimension.name for dimension in planned.dimensions)
            console.print(
                f"{trials} trials, {workers} at a time; varied settings: {names}",
                markup=False,
                soft_wrap=True,
            )
            with ray_cluster(num_cpus=workers):
                if not run_trials(
                    planned, workers, _say, specs=specs_file(asked.recipe), device=device
                ):
                    sys.stderr.write("interrupted; run the same command again to resume\n")
                    sys.exit(_INTERRUPTED)
            planned.finish()
    best = planned.best()
    console.print(f"Best trial: {best.number}", markup=False)
    for name, value in best.settings.items():
        console.print(f"  {name} {value}", markup=False, soft_wrap=True)
    say_outcome(console, out / "best")
    console.print(f"Comparison of all trials: {out / 'sweep.html'}", markup=False, soft_wrap=True)


def _begin(sweep: Sweep, draft: Draft, *, fresh: bool) -> None:
    """Write the sweep into its folder, or resume the same sweep of the same files."""
    refuse_foreign(sweep.out, (PLAN,))
    inputs = draft.inputs()
    if not fresh:
        draft.check_given()
        check_inputs(sweep.out, inputs)
    sweep.begin(fresh=fresh)
    draft.save_parts()
    write_inputs(sweep.out, inputs)


def _dimensions(planned: Planned, over: Sequence[str]) -> list[Dimension]:
    run = planned.run
    if not over:
        fixed = [choice.path for choice in planned.choices if choice.origin == "command"]
        return usual_dimensions(run, fixed)
    given = list[Dimension]()
    for text in over:
        path, sign, values = text.partition("=")
        if not sign:
            raise SpecError(
                f"--over: expected path=low..high or path=value,value, got {text!r}. Add the values after ="
            )
        given.append(given_dimension(run, whole_path(run, path), values))
    return given


def _say(ended: Ended) -> None:
    """Print a line for every ended trial."""
    if is_quiet():
        return
    trial = ended.trial
    score = "" if trial.score is None else f", {trial.score:.4g}"
    after = "" if trial.status == "finished" else f" after {trial.progress:.0%}"
    sys.stderr.write(
        f"[{ended.number}/{ended.of}] trial {trial.number}: {trial.status}{after}{score}\n"
    )

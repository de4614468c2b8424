"""The page of a sweep: the best settings, the learning curves, and a table of all trials."""

from collections.abc import Sequence

from ..views import ParallelAxis, ParallelLine, Section, Series, curves, page, parallel
from ..views._tables import Table
from ._space import Dimension
from ._trials import Measure, Trial

_NAMED = 6  # curves with a legend entry, with the default
_GROUPS = ("the best", "the default, trial 1", "finished", "stopped early")
_MOST_DRAWN = 200  # lines across the axes: more are unreadable


def sweep_page(
    name: str, measure: Measure, dimensions: Sequence[Dimension], trials: Sequence[Trial]
) -> str:
    """Render the page; trials are sorted best first."""
    sections = [_outcome(measure, trials)]
    if dimensions:
        sections.append(_settings(measure, dimensions, trials))
    sections += [_curves(measure, trials), _all(measure, dimensions, trials)]
    return page(f"Sweep {name}", sections)


def _outcome(measure: Measure, trials: Sequence[Trial]) -> Section:
    best = trials[0]
    default = next(trial for trial in trials if trial.number == 1)
    counts = [
        f"{number} {status}"
        for status in ("finished", "stopped", "failed", "not begun")
        if (number := sum(trial.status == status for trial in trials))
    ]
    side = "higher" if measure.higher_is_better else "lower"
    said = [
        f"{len(trials)} trials: {', '.join(counts)}. {sum(t.seconds for t in trials) / 60:.1f} minutes of "
        f"training in all. Compared by {measure.name} on the validation set, {side} is better.",
        f"The best is trial {best.number}, with {_figure(best.score)}; the default, trial 1, has "
        f"{_figure(default.score)}."
        if best.number != 1
        else f"The default, trial 1, is the best, with {_figure(best.score)}.",
        "The score of the best trial is slightly optimistic, because it was selected by this score. "
        "The test set, if given, did not influence the selection.",
    ]
    rows = [("trial", str(best.number)), (measure.name, _figure(best.score))]
    rows += [(f"{name}, test", _figure(value)) for name, value in best.test.items()]
    rows += list(best.settings.items())
    table = Table(caption="The best", columns=("", "value"), rows=tuple(rows))
    return Section(title="The best", text="\n\n".join(said), tables=(table,))


def _settings(
    measure: Measure, dimensions: Sequence[Dimension], trials: Sequence[Trial]
) -> Section:
    """Draw every trial as a line across its settings, to its score."""
    scored = [trial for trial in trials if trial.score is not None][:_MOST_DRAWN]
    goodness = [measure.goodness(trial.score) for trial in scored]
    worst, best = (min(goodness), max(goodness)) if goodness else (0.0, 0.0)
    room = best - worst or 1.0
    score = ParallelAxis(
        name=measure.name,
        ticks=tuple(
            (share, _figure(abs(worst + share * (best - worst)))) for share in (0.0, 0.5, 1.0)
        )
        if best > worst
        else ((1.0, _figure(abs(best))),),
    )
    axes = [*(_axis(dimension) for dimension in dimensions), score]
    lines = [
        ParallelLine(
            name=f"trial {trial.number}, {trial.status}",
            places=(
                *(one.share_of(trial.settings[one.name]) for one in dimensions),
                (reached - worst) / room if best > worst else 1.0,
            ),
            values=(*(trial.settings[one.name] for one in dimensions), _figure(trial.score)),
            group=_group(trial, trials[0]),
        )
        for trial, reached in zip(scored, goodness, strict=True)
    ]
    text = (
        "One line per trial, from its settings on the left to its score on the right; the best score "
        "is at the top. A trial that was stopped early has its last score."
    )
    drawing = parallel(axes, lines, title="Settings and score of every trial", groups=_GROUPS)
    return Section(title="Settings", text=text, drawings=(drawing,))


def _axis(dimension: Dimension) -> ParallelAxis:
    places = (
        [(index + 0.5) / len(dimension.values) for index in range(len(dimension.values))]
        if dimension.values
        else [0.0, 0.5, 1.0]
    )
    ticks = tuple((place, dimension.text_at(place)) for place in places)
    return ParallelAxis(name=dimension.name, ticks=ticks)


def _group(trial: Trial, best: Trial) -> int:
    if trial.number == best.number:
        return 0
    if trial.number == 1:
        return 1
    return 2 if trial.status == "finished" else 3


def _curves(measure: Measure, trials: Sequence[Trial]) -> Section:
    """Draw validation scores over the run: the best and the default by name, the others thin."""
    begun = [trial for trial in trials if trial.validations]
    chosen = [trial for trial in begun if trial.number == 1]
    chosen += [trial for trial in begun if trial.number != 1][: _NAMED - len(chosen)]
    chosen.sort(key=trials.index)
    others = [trial for trial in begun if trial not in chosen]
    drawing = curves(
        [_series(trial, trials[0]) for trial in chosen],
        title=f"{measure.name} at each validation",
        x_label="% of the run",
        y_label=measure.name,
        behind=[_series(trial, trials[0]) for trial in others],
    )
    text = (
        "Validation during training uses greedy search; the score in the table is for the whole "
        "set, with the search of the task."
    )
    return Section(title="Learning curves", text=text, drawings=(drawing,))


def _series(trial: Trial, best: Trial) -> Series:
    label = f"trial {trial.number}"
    if trial.number == best.number:
        label += ", the best"
    if trial.number == 1:
        label += ", the default"
    points = tuple((round(100 * progress, 2), score) for progress, score in trial.validations)
    return Series(name=label, points=points)


def _all(measure: Measure, dimensions: Sequence[Dimension], trials: Sequence[Trial]) -> Section:
    names = [dimension.name for dimension in dimensions]
    tests = list(dict.fromkeys(name for trial in trials for name in trial.test))
    rows = tuple(
        (
            str(trial.number),
            _figure(trial.score),
            *(_figure(trial.test.get(name)) for name in tests),
            trial.status if not trial.text else f"failed: {trial.text}",
            f"{trial.progress:.0%}",
            f"{trial.seconds:.0f}",
            *(trial.settings[name] for name in names),
        )
        for trial in trials
    )
    columns = ("trial", measure.name, *(f"{name}, test" for name in tests), "", "of the run", "s")
    table = Table(caption="All trials, the best first", columns=(*columns, *names), rows=rows)
    return Section(title="All trials", tables=(table,))


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"

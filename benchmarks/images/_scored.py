"""Shared code of the experiments on images: score models on their test sets and write the tables.

You can score a few cases at a time: the file keeps its other cases if their recipe and data have not changed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.specs import from_json
from foveal.tasks import AbstractTask, Evaluation
from foveal.training import Run

from ..lectures._comparison import mean_row, spec_of
from ..records._fitting import Cost, fitted_seeds
from ..results import Results, ResultsError, Row, digest


class Scored(NamedTuple):
    """The scores of one model on the test set of its case."""

    task: AbstractTask[Any]
    found: Evaluation
    minutes: float  # of CPU time


# Additional figures of a model: name to value and unit.
More = Callable[[str, Scored], Mapping[str, tuple[float, str]]]


def score_cases(
    name: str,
    run: Callable[[str], Run],
    cases: Sequence[str],
    seeds: Sequence[int],
    folders: tuple[Path, Path],
    *,
    aims: Mapping[str, float],
    more: More,
    data: Mapping[str, Path],
) -> None:
    """Write the results of the cases that were fitted: metrics, slices of the main metric, additional figures, and cost.

    Args:
        name: the name of the experiment.
        run: its recipe.
        cases: the cases to score.
        seeds: the runs of each case; those that were not fitted are left out.
        folders: the folder of the runs, and the folder of the results.
        aims: targets, by the name of a row.
        more: additional figures of a model.
        data: the data files by name; the results contain their digests.
    """
    runs, results = folders
    path = results / f"{name}.json"
    read = {called: digest(file) for called, file in data.items() if file.exists()}
    made_by = f"python -m benchmarks.images score {name}"
    folders_of = {case: fitted_seeds(runs, name, case, seeds) for case in cases}
    there = {case: found for case, found in folders_of.items() if found}
    made = _with_other_cases(replace(Results.here(made_by), data=read), path, tuple(there), run)
    rows = list[Row]()
    for case, of_seeds in there.items():
        source = run(case).test
        assert source is not None
        examples = list(source)
        figures = dict[str, list[tuple[float, str]]]()
        for folder in of_seeds.values():
            scored = _scored(folder, examples)
            for figure, value in _figures(case, scored, more).items():
                figures.setdefault(figure, []).append(value)
        for figure, found in figures.items():
            row, values = f"{case}: {figure}", [value for value, _ in found]
            rows.append(mean_row(row, values, found[0][1], tuple(of_seeds), aims.get(row)))
            print(f"{row} {rows[-1].value:.2f} {found[0][1]}", flush=True)
    spec = {case: spec_of(run(case)) for case in there}
    replace(made.with_rows(rows), spec={**made.spec, **spec}).save(path)


def _with_other_cases(
    made: Results, path: Path, cases: Sequence[str], run: Callable[[str], Run]
) -> Results:
    """Add the rows of other cases from the file at `path`."""
    earlier = Results.load(path) if path.exists() else made
    others = {case: spec for case, spec in earlier.spec.items() if case not in cases}
    if not others:
        return made
    changed = [case for case, spec in others.items() if not _is_spec_of(run(case), spec)]
    changed += [name for name, sha in made.data.items() if earlier.data.get(name, sha) != sha]
    if changed:
        raise ResultsError(
            f"{path}: the rows of {', '.join(others)} were made before {', '.join(changed)} changed, so they cannot "
            "stand beside new ones. Fit and score those too, or write elsewhere with --results."
        )
    kept = made.continued_from(path, any_machine=True)
    rows = tuple(row for row in kept.rows if row.name.partition(": ")[0] in others)
    return replace(kept, rows=rows, data={**earlier.data, **made.data}, spec=others)


def _is_spec_of(run: Run, spec: Mapping[str, Any]) -> bool:
    """Return whether a results file has the spec of a run; settings added later count as defaults."""
    parts = {"task": run.task, "training": run.training}
    return all(
        from_json(type(part), json.dumps(spec[name])) == part for name, part in parts.items()
    )


def _scored(folder: Path, examples: Sequence[Example]) -> Scored:
    task = load_bundle(folder)
    return Scored(task, task.evaluate(examples), Cost.load(folder).processor_minutes)


def _figures(case: str, scored: Scored, more: More) -> dict[str, tuple[float, str]]:
    found = scored.found
    figures = {name: (each.value, _unit(name)) for name, each in found.statistics.items()}
    for part in found.slices:
        if part.num_examples == len(found.references):
            continue  # the slice has all examples again: clips have no tokens to slice by
        figures[f"{found.main.name}, {part.name}"] = (part.metric.value, _unit(found.main.name))
    figures |= more(case, scored)
    size = sum(part.numel() for part in scored.task.model.parameters())
    return figures | {
        "parameters": (float(size), ""),
        "processor minutes": (scored.minutes, "min"),
    }


def _unit(metric: str) -> str:
    return "" if metric == "cider" else "%"

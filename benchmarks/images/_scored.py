"""What the tables of the experiments on images have in common: a model scored on its test part."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sightline.data import Example
from sightline.tasks import AbstractTask, Evaluation, load_bundle
from sightline.training import Run

from ..lectures._comparison import mean_row, spec_of
from ..records._fitting import Cost, folder_of
from ..results import Results, Row, digest


class Scored(NamedTuple):
    """One model on the test part of its case."""

    task: AbstractTask[Any]
    found: Evaluation
    minutes: float  # of a processor


# What else is told of a model beside its metrics: by the name of the figure, with its unit.
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
    data: Iterable[Path],
) -> None:
    """Write the results of all cases: metrics, slices of the main one, what else is asked for, and cost.

    Args:
        name: of the experiment.
        run: its recipe.
        cases: which of its cases.
        seeds: which runs of each.
        folders: of the runs, and of the results.
        aims: what was asked for, by the name of a row.
        more: what else is told of a model.
        data: the files whose digests say what was read.
    """
    runs, results = folders
    rows = list[Row]()
    for case in cases:
        source = run(case).test
        assert source is not None
        examples = list(source)
        figures = dict[str, list[tuple[float, str]]]()
        for seed in seeds:
            scored = _scored(folder_of(runs, name, case, seed), examples)
            for figure, value in _figures(case, scored, more).items():
                figures.setdefault(figure, []).append(value)
        for figure, found in figures.items():
            row, values = f"{case}: {figure}", [value for value, _ in found]
            rows.append(mean_row(row, values, found[0][1], seeds, aims.get(row)))
            print(f"{row} {rows[-1].value:.2f} {found[0][1]}", flush=True)
    made = Results.here(f"python -m benchmarks.images score {name}").with_rows(rows)
    replace(
        made,
        data={path.name: digest(path) for path in data if path.exists()},
        spec={case: spec_of(run(case)) for case in cases},
    ).save(results / f"{name}.json")


def _scored(folder: Path, examples: Sequence[Example]) -> Scored:
    task = load_bundle(folder)
    return Scored(task, task.evaluate(examples), Cost.load(folder).processor_minutes)


def _figures(case: str, scored: Scored, more: More) -> dict[str, tuple[float, str]]:
    found = scored.found
    figures = {name: (each.value, _unit(name)) for name, each in found.statistics.items()}
    for part in found.slices:
        if part.num_examples == len(found.references):
            continue  # all of them again: clips have no symbols to be told apart by
        figures[f"{found.main.name}, {part.name}"] = (part.metric.value, _unit(found.main.name))
    figures |= more(case, scored)
    size = sum(part.numel() for part in scored.task.model.parameters())
    return figures | {
        "parameters": (float(size), ""),
        "processor minutes": (scored.minutes, "min"),
    }


def _unit(metric: str) -> str:
    return "" if metric == "cider" else "%"

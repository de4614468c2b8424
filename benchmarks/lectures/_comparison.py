"""What the tables of compared systems have in common: means over seeds, and differences on the same examples."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np

from foveal.metrics import Statistics, compare
from foveal.specs import to_json
from foveal.training import Run

from ..results import Row

UNIT = "%"


def mean_row(
    name: str, values: Sequence[float], unit: str, seeds: Sequence[int], aim: float | None = None
) -> Row:
    """The mean of the seeds, with the lowest and the highest."""
    return Row(
        name=name,
        value=mean(values),
        unit=unit,
        spread=(min(values), max(values)) if len(values) > 1 else None,
        seeds=tuple(seeds),
        target=aim,
        sense=None if aim is None else ">=",
    )


def difference_rows(
    name: str,
    first: Sequence[Statistics],
    second: Sequence[Statistics],
    seeds: Sequence[int],
    *,
    unit: str = UNIT,
    aim: float | None = None,
) -> Iterator[Row]:
    """By how much the second of two systems is better than the first: the mean of the seeds of each on
    every example, with the interval of the paired bootstrap, and how probable it would be by chance.
    """
    found = compare(mean_statistics(first), mean_statistics(second))
    yield Row(
        name=f"{name}: difference",
        value=found.difference,
        unit=unit,
        spread=(found.low, found.high),
        seeds=tuple(seeds),
        target=aim,
        sense=None if aim is None else ">=",
    )
    yield Row(name=f"{name}: p of no difference", value=found.p_value, unit="", seeds=tuple(seeds))


def mean_statistics(of_seeds: Sequence[Statistics]) -> Statistics:
    """The mean of the seeds on each example."""
    return replace(of_seeds[0], rows=np.mean([each.rows for each in of_seeds], axis=0))


def spec_of(run: Run) -> dict[str, Any]:
    """What was trained, and how, for a results file."""
    content = json.loads(to_json(run))
    return {name: content[name] for name in ("task", "training")}

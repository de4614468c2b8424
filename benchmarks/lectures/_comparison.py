"""Shared code of the tables of compared systems: means over seeds, and differences on the same examples."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from types import MappingProxyType
from typing import Any

import numpy as np

from foveal.metrics import Statistics, compare
from foveal.specs import to_json
from foveal.training import Run

from ..results import Results, Row

UNIT = "%"


def update(
    path: Path,
    experiment: str,
    rows: Iterable[Row],
    *,
    spec: Mapping[str, Any] = MappingProxyType({}),
    data: Mapping[str, str] = MappingProxyType({}),
    packages: Sequence[str] = (),
) -> None:
    """Write the figures of the cases that were scored. The file keeps the figures of its other cases."""
    made = Results.here(f"python -m benchmarks.lectures score {experiment}", packages=packages)
    if path.exists():
        earlier = Results.load(path)
        data, spec = {**earlier.data, **data}, {**earlier.spec, **spec}
    kept = made.continued_from(path, any_machine=True)
    replace(kept.with_rows(rows), data=dict(data), spec=dict(spec)).save(path)


def mean_row(
    name: str, values: Sequence[float], unit: str, seeds: Sequence[int], aim: float | None = None
) -> Row:
    """Return the mean over seeds, with the lowest and the highest."""
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
    """Yield the gain of the second of two systems over the first, and its p-value.

    The gain is the difference of the means over seeds on each example, with the interval of the paired
    bootstrap.
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
    """Return the mean over seeds on each example."""
    return replace(of_seeds[0], rows=np.mean([each.rows for each in of_seeds], axis=0))


def spec_of(run: Run) -> dict[str, Any]:
    """Return the model and training settings for a results file."""
    content = json.loads(to_json(run))
    return {name: content[name] for name in ("task", "training")}

"""Tree transduction: the length to failure of each model at each depth, and the gain from trees.

    results/tree_transduction.json    a row of the table for each case, and for each difference

The difference of two cases compares their means over seeds on the same formulas; its spread is the
interval of the paired bootstrap.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from foveal.bundles import load_bundle
from foveal.metrics import Statistics, compare, length_to_failure
from foveal.specs import to_json
from foveal.tasks import PredictionSpec
from recipes import tree_transduction

from ..records._fitting import Cost, folder_of
from ..results import Row, digest
from ._comparison import update

NAME = "tree_transduction"
UNIT = "%"
# Kim et al. 2017, table 1: per cent of the length to failure, depth 2 to 6.
PUBLISHED = {
    "none": (7.6, 4.1, 2.8, 2.1, 1.5),
    "simple": (87.4, 49.6, 23.3, 15.0, 8.5),
    "structured": (99.2, 87.0, 64.5, 30.8, 18.2),
}
COMPARED = (("simple", "structured"), ("simple, bounded", "structured, bounded"))
# The longest test formula has about 250 tokens; longer outputs are wrong anyway and are cut off.
LONGEST = 300


class Scored(NamedTuple):
    """The scores of one case."""

    by_depth: Mapping[int, Sequence[Statistics]]  # for each seed
    parameters: int
    costs: Sequence[Cost]


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update the figures of these cases."""
    scored = dict[str, Scored]()
    for case in cases:
        scored[case] = _scored([folder_of(runs, NAME, case, seed) for seed in seeds])
        shown = " ".join(
            f"{mean(s.value for s in one):.1f}" for one in scored[case].by_depth.values()
        )
        print(f"{case}: {shown}")
    rows = [row for case in scored for row in _rows(case, scored[case], seeds)]
    for pair in COMPARED:
        if scored.keys() >= set(pair):
            rows += _differences(pair, scored, seeds)
    files = sorted(tree_transduction.FOLDER.glob("*.tsv"))
    update(
        results / f"{NAME}.json",
        NAME,
        rows,
        data={f"formulas/{path.name}": digest(path) for path in files},
        spec={case: _spec(case) for case in cases},
        packages=["foveal-native"],
    )


def _spec(case: str) -> dict[str, Any]:
    content = json.loads(to_json(tree_transduction.recipe(case)))
    return {name: content[name] for name in ("task", "training")}


def _scored(folders: Sequence[Path]) -> Scored:
    tasks = [load_bundle(folder) for folder in folders]
    by_depth = dict[int, list[Statistics]]()
    settings = PredictionSpec(beam_size=1, max_length=LONGEST)
    for depth in tree_transduction.DEPTHS:
        examples = list(tree_transduction.part(f"test_{depth}"))
        references = [example.target or "" for example in examples]
        outputs = [[each.output for each in task.predict(examples, settings)] for task in tasks]
        by_depth[depth] = [length_to_failure(references, texts) for texts in outputs]
    return Scored(
        by_depth=by_depth,
        parameters=sum(weights.numel() for weights in tasks[0].model.parameters()),
        costs=[Cost.load(folder) for folder in folders],
    )


def _rows(case: str, scored: Scored, seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of a case; in their names, the table row comes before the colon, the column after."""

    def row(name: str, values: Sequence[float], unit: str, aim: float | None = None) -> Row:
        return Row(
            name=f"{case}: {name}",
            value=mean(values),
            unit=unit,
            spread=(min(values), max(values)) if len(values) > 1 else None,
            seeds=tuple(seeds),
            target=aim,
            sense=None if aim is None else ">=",
        )

    aims = PUBLISHED.get(case, (None,) * len(scored.by_depth))
    for aim, (depth, found) in zip(aims, scored.by_depth.items(), strict=True):
        yield row(f"depth {depth}", [statistics.value for statistics in found], UNIT, aim)
    yield row("parameters", [scored.parameters], "")
    yield row("processor minutes", [cost.processor_minutes for cost in scored.costs], "min")


def _differences(
    pair: tuple[str, str], scored: Mapping[str, Scored], seeds: Sequence[int]
) -> Iterator[Row]:
    """Yield the gain of the second of two cases over the first."""
    first, second = (scored[case].by_depth for case in pair)
    for depth in first:
        found = compare(_mean(first[depth]), _mean(second[depth]))
        yield Row(
            name=f"{pair[1]} - {pair[0]}: depth {depth}",
            value=found.difference,
            unit=UNIT,
            spread=(found.low, found.high),
            seeds=tuple(seeds),
        )


def _mean(of_seeds: Sequence[Statistics]) -> Statistics:
    """Return the mean over seeds on each formula."""
    return replace(of_seeds[0], rows=np.mean([each.rows for each in of_seeds], axis=0))

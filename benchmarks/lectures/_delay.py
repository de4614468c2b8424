"""Remember one token over a distance: accuracy by cell and distance.

    results/delay.json

For each cell and distance: the accuracy on the test set, mean over seeds with the lowest and the highest. The learning
rate is the one with the higher mean accuracy on the validation set.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.tasks import Classification
from recipes import delay

from ..records._fitting import fitted
from ..results import Row
from ._comparison import UNIT, mean_row, spec_of, update

NAME = "delay"


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/delay.json with the cases that were fitted with all seeds."""
    rows, specs = list[Row](), dict[str, object]()
    for cell in delay.CELLS:
        for distance in delay.DISTANCES:
            both = [f"{cell}_{distance}_{rate}" for rate in delay.RATES]
            folders = {case: fitted(runs, NAME, case, seeds) for case in both if case in cases}
            if len(folders) < len(both) or not all(folders.values()):
                continue
            best = max(folders, key=lambda case: mean(map(_validated, folders[case])))
            run = delay.recipe(best)
            assert run.test is not None
            examples = list[Example](run.test)
            values = [_accuracy(folder, examples) for folder in folders[best]]
            rows.append(mean_row(f"{cell}: {distance}", values, UNIT, seeds))
            specs[best] = spec_of(run)
            print(best, values, flush=True)
    update(results / f"{NAME}.json", NAME, rows, spec=specs)


def _validated(folder: Path) -> float:
    """Return the accuracy on the validation set, which the run has recorded."""
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return float(metrics["dev"]["accuracy"]["value"])


def _accuracy(folder: Path, examples: Sequence[Example]) -> float:
    task = load_bundle(folder)
    assert isinstance(task, Classification)
    return task.evaluate(examples).statistics["accuracy"].value

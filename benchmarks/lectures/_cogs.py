"""Sentences to logical forms: exact matches on the test set, and with nouns in new roles.

    results/cogs.json    for each network: the fraction of logical forms without any error

Every case has the seeds that were fitted.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.tasks import Transduction
from recipes import cogs

from ..records._fitting import Cost, fitted_seeds
from ..results import Row, digests
from ._comparison import UNIT, mean_row, spec_of, update

NAME = "cogs"
MOST = 400  # sentences of each gap
_SOURCE = "abstract of Kim and Linzen 2020 (https://arxiv.org/abs/2010.05465), over LSTMs and Transformers"
# The paper measures generalization on a set that is not in the data here.
PUBLISHED = {"lowest": (96.0, 16.0), "highest": (99.0, 35.0)}


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/cogs.json with the cases that were fitted, each with its fitted seeds."""
    rows, specs = list[Row](), dict[str, object]()
    test = [Example(source, target) for source, target in cogs.pairs("test")]
    sets = {"test": test} | {
        name: [Example(*pair) for pair in islice(cogs.novel(gap), MOST)]
        for name, gap in cogs.GAPS.items()
    }
    for case in cases:
        folders = fitted_seeds(runs, NAME, case, seeds)
        if folders:
            rows += _rows(case, tuple(folders.values()), tuple(folders), sets)
            specs[case] = spec_of(cogs.recipe(case))
    data = digests([cogs.file_of(part) for part in cogs.PARTS], cogs.DATA)
    update(results / f"{NAME}.json", NAME, [*rows, *_published()], data=data, spec=specs)


def _rows(
    case: str, folders: Sequence[Path], seeds: Sequence[int], sets: dict[str, list[Example]]
) -> Iterator[Row]:
    """Yield the figures of a network, which is a column of the table; the rows are the sets of sentences."""
    tasks = [_loaded(folder) for folder in folders]
    for name, examples in sets.items():
        values = [_right(task, examples) for task in tasks]
        print(case, name, [round(value, 1) for value in values], flush=True)
        yield mean_row(f"{name}: {case}", values, UNIT, seeds)
    size = sum(weights.numel() for weights in tasks[0].model.parameters())
    yield Row(name=f"parameters: {case}", value=size, unit="", seeds=tuple(seeds))
    minutes = [Cost.load(folder).processor_minutes for folder in folders]
    yield mean_row(f"CPU minutes: {case}", minutes, "min", seeds)


def _loaded(folder: Path) -> Transduction:
    task = load_bundle(folder)
    assert isinstance(task, Transduction)
    return task


def _right(task: Transduction, examples: Sequence[Example]) -> float:
    """Return the percentage of outputs that equal their target."""
    outputs = [answer.output for answer in task.predict(examples)]
    pairs = zip(outputs, examples, strict=True)
    return 100 * sum(output == example.target for output, example in pairs) / len(examples)


def _published() -> Iterator[Row]:
    for which, figures in PUBLISHED.items():
        for column, value in zip(("test", "published generalization set"), figures, strict=True):
            yield Row(
                name=f"{column}: Kim and Linzen 2020, {which}",
                value=value,
                unit=UNIT,
                kind="paper",
                source=_SOURCE,
            )

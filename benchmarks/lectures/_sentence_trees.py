"""Sentences along trees: the accuracy of each network on whole sentences, and the differences between them.

    results/sentence_trees.json     a row of the table for each network, and for each difference

Cases that were not fitted with all seeds are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.metrics import Statistics
from foveal.tasks import Classification
from recipes import sentence_trees

from ..records._fitting import Cost, fitted
from ..results import Row, digests
from ._comparison import UNIT, difference_rows, mean_row, spec_of, update

NAME = "sentence_trees"
# The trees with one composition, then the compositions on one tree, then networks without a tree.
PAIRS = (
    ("chain", "balanced"),
    ("chain", "given"),
    ("balanced", "given"),
    ("given_tanh", "given"),
    ("given_tensor", "given"),
    ("recurrent", "given"),
    ("recurrent", "convolution"),
    ("words", "convolution"),
)
PUBLISHED = Row(
    name="Socher et al. 2013, tensor: accuracy",
    value=85.4,
    unit=UNIT,
    kind="paper",
    source="abstract of Socher et al. 2013 (https://aclanthology.org/D13-1170)",
)


class Scored(NamedTuple):
    """The test results of one network, in the order of the seeds."""

    right: Sequence[Statistics]
    parameters: int
    costs: Sequence[Cost]


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/sentence_trees.json with the cases that were fitted with all seeds."""
    found = dict[str, Scored]()
    for case in cases:
        folders = fitted(runs, NAME, case, seeds)
        if not folders:
            continue
        test = sentence_trees.recipe(case).test
        assert test is not None
        found[case] = _scored(list[Example](test), folders)
        print(case, [round(each.value, 1) for each in found[case].right], flush=True)
    data = digests(
        [sentence_trees.file_of(part) for part in sentence_trees.PARTS], sentence_trees.DATA
    )
    spec = {case: spec_of(sentence_trees.recipe(case)) for case in found}
    update(results / f"{NAME}.json", NAME, _rows(found, seeds), data=data, spec=spec)


def _scored(examples: Sequence[Example], folders: Sequence[Path]) -> Scored:
    right, parameters = list[Statistics](), 0
    for folder in folders:
        task = load_bundle(folder)
        assert isinstance(task, Classification)
        right.append(task.evaluate(examples).statistics["accuracy"])
        parameters = sum(weights.numel() for weights in task.model.parameters())
    return Scored(right, parameters, [Cost.load(folder) for folder in folders])


def _rows(found: Mapping[str, Scored], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of each network; the table has the text before the colon in its rows."""
    for case, scored in found.items():
        name = _title(case)
        yield mean_row(f"{name}: accuracy", [each.value for each in scored.right], UNIT, seeds)
        yield Row(name=f"{name}: parameters", value=scored.parameters, unit="", seeds=tuple(seeds))
        minutes = [cost.processor_minutes for cost in scored.costs]
        yield mean_row(f"{name}: processor minutes", minutes, "min", seeds)
    yield PUBLISHED
    for first, second in PAIRS:
        if first in found and second in found:
            name = f"{_title(second)} - {_title(first)}"
            yield from difference_rows(name, found[first].right, found[second].right, seeds)


def _title(case: str) -> str:
    return case.replace("_", ", ")

"""Losses on attention, each on and off: formulas that are right, and the alignment that attention finds.

    results/attention_losses.json

For each loss: exact match of the test set, alignment error rate (AER) of the attention under teacher forcing by the
rule of `foveal align` and by the largest weight, and CPU minutes of training; mean over seeds with the lowest and the
highest. The difference to training without the loss has the interval of the paired bootstrap over formulas.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from examples.support.known_alignments import align_formula
from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import align
from foveal.metrics import Statistics, alignment_scores
from foveal.tasks import Transduction
from recipes import attention_losses

from ..records._fitting import Cost, fitted
from ..results import Row, digests
from ._comparison import UNIT, difference_rows, mean_row, spec_of, update

NAME = "attention_losses"
BASELINE = "off"


class Scored(NamedTuple):
    """The test results of one loss, in the order of the seeds."""

    exact: Sequence[Statistics]
    aer: Sequence[float]
    aer_of_largest: Sequence[float]
    costs: Sequence[Cost]


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update results/attention_losses.json with the cases that were fitted with all seeds."""
    examples = list[Example](attention_losses.part("test"))
    found, specs = dict[str, Scored](), dict[str, object]()
    for case in cases:
        folders = fitted(runs, NAME, case, seeds)
        if not folders:
            continue
        found[case] = _scored(examples, folders)
        specs[case] = spec_of(attention_losses.recipe(case))
        print(case, [round(each.value, 1) for each in found[case].exact], found[case].aer)
    files = [attention_losses.FOLDER / f"{name}.tsv" for name in attention_losses.COUNTS]
    data = digests(files, attention_losses.FOLDER.parent)
    rows = _rows(found, seeds)
    update(results / f"{NAME}.json", NAME, rows, data=data, spec=specs)


def _scored(examples: Sequence[Example], folders: Sequence[Path]) -> Scored:
    gold = [align_formula(example.text).gold for example in examples]
    exact, aer, largest = list[Statistics](), list[float](), list[float]()
    for folder in folders:
        task = load_bundle(folder)
        assert isinstance(task, Transduction)
        exact.append(task.evaluate(examples).statistics["exact_match"])
        likely, chosen = align(task, examples), align(task, examples, by="argmax")
        for values, pairs in ((aer, likely), (largest, chosen)):
            values.append(alignment_scores([pair.links for pair in pairs], gold).aer.value)
    return Scored(exact, aer, largest, [Cost.load(folder) for folder in folders])


def _rows(found: Mapping[str, Scored], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of each loss; the table has the text before the colon in its rows."""
    for case, scored in found.items():
        name = case.replace("_", " ")
        yield mean_row(f"{name}: right", [each.value for each in scored.exact], UNIT, seeds)
        if case != BASELINE and BASELINE in found:
            yield from difference_rows(name, found[BASELINE].exact, scored.exact, seeds)
        yield mean_row(f"{name}: AER", scored.aer, UNIT, seeds)
        yield mean_row(f"{name}: AER of the largest weight", scored.aer_of_largest, UNIT, seeds)
        minutes = [cost.processor_minutes for cost in scored.costs]
        yield mean_row(f"{name}: CPU minutes", minutes, "min", seeds)

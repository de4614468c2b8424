"""The long-sentence claim: the gain from attention on short and on long sentences.

    results/commands_by_length.json    SCAN, trained on commands of at most 22 actions

Test examples are split by length into four parts of about the same size. For each part, the file has BLEU and
exact match, as the mean over seeds with the lowest and the highest, and the gain of attention over an
encoder-decoder without attention, with the interval of the paired bootstrap.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.metrics import Statistics, bleu, compare, exact_match
from foveal.metrics._slices import length_parts
from recipes import scan

from ..records._fitting import fitted
from ..results import Row, digests
from ._comparison import UNIT, mean_row, mean_statistics, spec_of, update

NAME = "commands_by_length"
NAMES = {
    "length_none": "none",
    "length": "simple",
    "length_hard": "hard",
    "length_segment": "segment",
}
CASES = tuple(NAMES)
WITHOUT, WITH = "none", "simple"


class Written(NamedTuple):
    """The outputs of the models of one system on the test set, in the order of the seeds."""

    bleu: Sequence[Statistics]
    exact: Sequence[Statistics]


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update the file with the cases that were fitted with all seeds."""
    examples = list[Example](scan.part("length", "test"))
    references = [example.target or "" for example in examples]
    systems, specs = dict[str, Written](), dict[str, object]()
    for case in cases:
        folders = fitted(runs, NAME, case, seeds)
        if not folders:
            continue
        outputs = [
            [answer.output for answer in load_bundle(folder).predict(examples)]
            for folder in folders
        ]
        systems[NAMES[case]] = Written(
            bleu=[bleu(references, texts, tokenize="none") for texts in outputs],
            exact=[exact_match(references, texts) for texts in outputs],
        )
        specs[case] = spec_of(scan.recipe(case))
        found = ", ".join(f"{each.value:.1f}" for each in systems[NAMES[case]].exact)
        print(f"{case}: {found}", flush=True)
    lengths = [len(reference.split()) for reference in references]
    files = [scan.DATA / f"scan/tasks_{part}_length.txt.gz" for part in ("train", "test")]
    update(
        results / f"{NAME}.json",
        NAME,
        length_rows(lengths, "actions", systems, seeds),
        data=digests(files, scan.DATA),
        spec=specs,
        packages=["foveal-native"],
    )


def length_rows(
    lengths: Sequence[int],
    unit: str,
    systems: Mapping[str, Written],
    seeds: Sequence[int],
) -> Iterator[Row]:
    """Yield the figures of each part; in their names, the table row comes before the colon, the column after."""
    parts = length_parts(lengths, unit=unit) | {"all": np.ones(len(lengths), bool)}
    for part, chosen in parts.items():
        for name, written in systems.items():
            for metric, of_seeds, symbol in (
                ("BLEU", written.bleu, "BLEU"),
                ("right", written.exact, UNIT),
            ):
                values = [each.subset(chosen).value for each in of_seeds]
                yield mean_row(f"{part}: {name}, {metric}", values, symbol, seeds)
        if systems.keys() >= {WITHOUT, WITH}:
            first, second = (
                mean_statistics(systems[name].bleu).subset(chosen) for name in (WITHOUT, WITH)
            )
            found = compare(first, second)
            yield Row(
                name=f"{part}: {WITH} - {WITHOUT}, BLEU",
                value=found.difference,
                unit="BLEU",
                spread=(found.low, found.high),
                seeds=tuple(seeds),
            )

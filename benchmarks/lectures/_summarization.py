"""Summaries of abstracts and subjects of emails: ROUGE next to the first sentence and to published figures.

    results/summarization.json

For each corpus and system: ROUGE-1, ROUGE-2 and ROUGE-L on the test set, mean over seeds with the lowest and the
highest, the difference to the first sentence (paired bootstrap over documents), repeated trigrams, words that occur in
the source, and cost. Rules that need no model have the bootstrap interval over documents.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Literal, NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.metrics import Statistics, compare, measure, rouge
from foveal.tasks import Transduction
from recipes import summarization
from recipes.summarization import Document

from ..records._fitting import COST, Cost, folder_of
from ..results import Results, Row, digests
from ._comparison import mean_row, mean_statistics, spec_of

NAME = "summarization"
OVERLAPS: tuple[Literal["1", "2", "L"], ...] = ("1", "2", "L")
# Answers that need no model. A copy of an email would be longer than any subject.
RULES: dict[str, Callable[[str], str]] = {
    "first sentence": lambda source: source.splitlines()[0],
    "whole source": lambda source: source,
}
BASELINE = "first sentence"


class Scored(NamedTuple):
    """The test results of one system, in the order of the seeds."""

    quality: Mapping[str, Sequence[Statistics]]  # by overlap
    repeated: Sequence[float]
    extractive: Sequence[float]
    costs: Sequence[Cost]
    parameters: int


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write results/summarization.json for the cases that were fitted with all seeds."""
    rows, specs = list[Row](), dict[str, object]()
    for corpus in summarization.CORPORA:
        documents = list(summarization.documents(corpus, "test"))
        baselines = {
            name: _rouges(documents, map(rule, _sources(documents))) for name, rule in RULES.items()
        }
        rows += _rule_rows(corpus, baselines)
        for case in (case for case in cases if case.startswith(f"{corpus}_")):
            done = [seed for seed in seeds if (folder_of(runs, NAME, case, seed) / COST).exists()]
            if not done:
                continue
            found = _scored(documents, [folder_of(runs, NAME, case, seed) for seed in done])
            rows += _rows(case.replace("_", ", ", 1), found, baselines[BASELINE], done)
            specs[case] = spec_of(summarization.recipe(case))
            print(case, done, [round(each.value, 2) for each in found.quality["1"]], flush=True)
    made = Results.here(f"python -m benchmarks.lectures score {NAME}")
    files = [
        summarization.file_of(corpus, part)
        for corpus in summarization.CORPORA
        for part in ("train", "dev", "test")
    ]
    data = digests(sorted(files), summarization.DATA)
    replace(made.with_rows(rows), data=data, spec=specs).save(results / f"{NAME}.json")

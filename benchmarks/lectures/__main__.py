"""Fit the models of an experiment with several seeds, or score what was fitted.

    python -m benchmarks.lectures fit tree_transduction --runs runs              all cases, seeds 1, 2 and 3
    python -m benchmarks.lectures fit tree_transduction --runs runs --cases simple --seeds 4
    python -m benchmarks.lectures score tree_transduction --runs runs            writes results/

Runs that are there already are not repeated, so that a queue can be stopped and started. Test examples
are read by `score` alone.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from recipes import babi, documents, entailment, tree_transduction
from sightline.training import Run

from ..records._fitting import fit_case, folder_of
from . import _documents, _entailment, _facts, _formulas


class Experiment(NamedTuple):
    """A recipe, the cases that are compared, and what scores them."""

    run: Callable[[str], Run]
    cases: Sequence[str]
    seeds: Sequence[int]
    score: Callable[[Sequence[str], Sequence[int], Path, Path], None]


EXPERIMENTS = {
    _formulas.NAME: Experiment(
        tree_transduction.recipe, tree_transduction.CASES, (1, 2, 3), _formulas.score
    ),
    _facts.NAME: Experiment(babi.recipe, babi.CASES, tuple(range(1, 11)), _facts.score),
    _documents.NAME: Experiment(documents.recipe, documents.CASES, (1,), _documents.score),
    _entailment.NAME: Experiment(entailment.recipe, entailment.CASES, (1, 2, 3), _entailment.score),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the first word says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("fit", "score"))
    parser.add_argument("experiment", choices=tuple(EXPERIMENTS))
    parser.add_argument("--runs", type=Path, required=True, help="the folder of all runs")
    parser.add_argument("--cases", nargs="+", help="by default all of the experiment")
    parser.add_argument("--seeds", type=int, nargs="+", help="by default those of the experiment")
    parser.add_argument("--results", type=Path, default=Path("results"))
    given = parser.parse_args(arguments)
    experiment = EXPERIMENTS[given.experiment]
    cases, seeds = tuple(given.cases or experiment.cases), tuple(given.seeds or experiment.seeds)
    torch.set_num_threads(1)  # two queues are faster than two threads
    if given.what == "score":
        experiment.score(cases, seeds, given.runs, given.results)
        return
    for seed in seeds:
        for case in cases:
            print(f"{given.experiment}, {case}, seed {seed}", flush=True)
            fit_case(
                experiment.run(case), seed, folder_of(given.runs, given.experiment, case, seed)
            )


if __name__ == "__main__":
    main()

"""The command of a set of experiments: fit the models of one with several seeds, score the fitted models, or update
the targets and the published figures of an experiment without its models.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from foveal.training import Run

from .records._fitting import fit_case, folder_of


class Experiment(NamedTuple):
    """A recipe, its cases, their scoring function, and the function that writes targets and published figures."""

    run: Callable[[str], Run]
    cases: Sequence[str]
    seeds: Sequence[int]
    score: Callable[[Sequence[str], Sequence[int], Path, Path], None]
    refer: Callable[[Path], None] | None = None


def command(
    experiments: Mapping[str, Experiment], about: str | None, arguments: Sequence[str] | None
) -> None:
    """Run the subcommand that the first argument names. Existing runs are not repeated."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0] if about else None)
    parser.add_argument("what", choices=("fit", "score", "references"))
    parser.add_argument("experiment", choices=tuple(experiments))
    parser.add_argument("--runs", type=Path, help="the folder of all runs")
    parser.add_argument("--cases", nargs="+", help="by default all of the experiment")
    parser.add_argument("--seeds", type=int, nargs="+", help="by default those of the experiment")
    parser.add_argument("--results", type=Path, default=Path("results"))
    given = parser.parse_args(arguments)
    experiment = experiments[given.experiment]
    if given.what == "references":
        if experiment.refer is None:
            parser.error(f"{given.experiment} has no published figures")
        experiment.refer(given.results)
        return
    if given.runs is None:
        parser.error(f"{given.what} needs --runs, the folder of all runs")
    cases, seeds = tuple(given.cases or experiment.cases), tuple(given.seeds or experiment.seeds)
    torch.set_num_threads(1)  # two queues are faster than two threads
    if given.what == "score":
        experiment.score(cases, seeds, given.runs, given.results)
        if experiment.refer is not None:
            experiment.refer(given.results)
        return
    for seed in seeds:
        for case in cases:
            print(f"{given.experiment}, {case}, seed {seed}", flush=True)
            fit_case(
                experiment.run(case), seed, folder_of(given.runs, given.experiment, case, seed)
            )

"""Fit a recipe with several seeds, score the models, or update the published figures next to them.

    python -m benchmarks.records fit g2p_low --runs runs                      ten languages, seeds 1, 2 and 3
    python -m benchmarks.records fit g2p_low --runs runs --cases ice --seeds 4
    python -m benchmarks.records score g2p_low --runs runs                    writes results/g2p_low.json
    python -m benchmarks.records references g2p_low                           targets and published figures, from the catalog

Existing runs are not repeated, hence a queue can be stopped and started again, and two queues can work on
different cases. Only `score` reads test words.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from ._catalogue import RECORDS
from ._fitting import fit_case, folder_of
from ._scoring import score, write_references


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the subcommand that the first argument names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("fit", "score", "references"))
    parser.add_argument("recipe", choices=tuple(RECORDS))
    parser.add_argument("--runs", type=Path, help="the folder of all runs")
    parser.add_argument("--cases", nargs="+", help="by default all of the recipe")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--results", type=Path, default=Path("results"))
    given = parser.parse_args(arguments)
    if given.what == "references":
        write_references(given.recipe, given.results)
        return
    if given.runs is None:
        parser.error(f"{given.what} needs --runs, the folder of all runs")
    record, seeds = RECORDS[given.recipe], tuple(given.seeds)
    cases = tuple(given.cases or record.cases)
    if given.what == "score":
        score(given.recipe, cases, seeds, given.runs, given.results)
        return
    torch.set_num_threads(1)  # two queues are faster than two threads
    for seed in seeds:
        for case in cases:
            print(f"{given.recipe}, {case}, seed {seed}", flush=True)
            fit_case(record.run(case), seed, folder_of(given.runs, given.recipe, case, seed))


if __name__ == "__main__":
    main()

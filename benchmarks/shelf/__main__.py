"""Train the models of the shelf, score them, and write them into shelf/ with their cards and the index.

    python -m benchmarks.shelf fit --runs runs                    all models; a finished one is skipped
    python -m benchmarks.shelf add --runs runs                    score, and write shelf/foveal_shelf
    python -m benchmarks.shelf add --runs runs --names g2p-is
    python -m benchmarks.shelf cards                              write the cards and the index again

Only `add` reads test files, and `cards` reads only what `add` has written. An interrupted `fit` resumes.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from ..records._fitting import fit_case
from ._adding import add, write_cards
from ._catalogue import MODELS

SHELF = Path(__file__).resolve().parents[2] / "shelf/foveal_shelf"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the subcommand that the first argument names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("fit", "add", "cards"))
    parser.add_argument("--runs", type=Path, help="the folder of all runs")
    parser.add_argument("--names", nargs="+", choices=tuple(MODELS), default=tuple(MODELS))
    parser.add_argument("--shelf", type=Path, default=SHELF)
    given = parser.parse_args(arguments)
    if given.what == "cards":
        write_cards(given.shelf)
        return
    if given.runs is None:
        parser.error(f"{given.what} needs --runs, the folder of all runs")
    torch.set_num_threads(1)
    for name in given.names:
        print(f"{given.what} {name}", flush=True)
        if given.what == "fit":
            fit_case(MODELS[name].run(), 1, given.runs / name)
        else:
            add(name, MODELS[name], given.runs / name, given.shelf)
    if given.what == "add":
        write_cards(given.shelf)


if __name__ == "__main__":
    main()

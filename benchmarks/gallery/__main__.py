"""Which pictures do small trained models give?

    python -m benchmarks.gallery                          every case, one after the other
    python -m benchmarks.gallery --cases facts shapes --seed 2

Each case trains a model for minutes on one thread, scores it on held-out examples, and writes
its attention on one example to results/gallery. The documentation renders its views from these
files; building the documentation trains no model. The example is fixed in the code of its case and was
chosen before looking at the output of any model.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from ..timing import use_one_thread
from ._exhibit import Budget, Exhibit
from ._facts import facts
from ._formulas import formulas
from ._parses import parses
from ._pronunciation import PRONUNCIATIONS
from ._reviews import reviews
from ._shapes import shapes

OUT = Path("results/gallery")
CASES: dict[str, Callable[[Budget], Exhibit]] = {
    **PRONUNCIATIONS,
    "parses": parses,
    "formulas": formulas,
    "facts": facts,
    "reviews": reviews,
    "shapes": shapes,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the models and write their scores and attention."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--updates", type=int, help="train so little, to try the command")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    use_one_thread()
    for case in given.cases:
        print(f"{case}: training", flush=True)
        exhibit = CASES[case](Budget(given.seed, given.updates))
        exhibit.save(given.out / f"{case}.json")
        for row in exhibit.results.rows:
            print(f"{case}: {row.name} {row.value:.1f} {row.unit}", flush=True)
        print(f"{case}: {exhibit.shown.facts}", flush=True)


if __name__ == "__main__":
    main()

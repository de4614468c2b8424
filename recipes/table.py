"""Print the tables of an experiment of the lectures, from what is in results/.

    python -m recipes.table structured_attention      all of them
    python -m recipes.table tree_transduction         one

They are the tables of the docs.
"""

import sys
from collections.abc import Sequence

from scripts.docs_records import record

STRUCTURED_ATTENTION = ("tree_transduction",)


def main(arguments: Sequence[str]) -> None:
    """Print each table that is asked for."""
    known = ("structured_attention", *STRUCTURED_ATTENTION)
    if len(arguments) != 1 or arguments[0] not in known:
        sys.exit(f"expected one of {', '.join(known)}, got {' '.join(arguments) or 'nothing'}")
    (name,) = arguments
    for recipe in STRUCTURED_ATTENTION if name == known[0] else (name,):
        print(f"## {recipe}\n\n{record(recipe)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

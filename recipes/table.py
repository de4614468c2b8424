"""Print the tables of an experiment of the lectures, from results/.

    python -m recipes.table structured_attention      all of them
    python -m recipes.table tree_transduction         one

They are the tables of the docs.
"""

import sys
from collections.abc import Sequence

from scripts.docs_records import RESULTS, record

STRUCTURED_ATTENTION = (
    "tree_transduction",
    "translation_characters",
    "translation_characters_by_length",
    "translation_characters_learning",
    "segments_found",
    "translation_words",
    "translation_words_by_length",
    "translation_words_learning",
    "commands_by_length",
    "babi",
    "entailment_sick",
    "entailment_snli",
    "documents_reviews",
    "documents_imdb",
)


def main(arguments: Sequence[str]) -> None:
    """Print the requested tables; without a choice, all tables with scores."""
    known = ("structured_attention", *STRUCTURED_ATTENTION)
    if len(arguments) != 1 or arguments[0] not in known:
        sys.exit(f"expected one of {', '.join(known)}, got {' '.join(arguments) or 'nothing'}")
    (name,) = arguments
    scored = [recipe for recipe in STRUCTURED_ATTENTION if (RESULTS / f"{recipe}.json").exists()]
    if name != known[0] and name not in scored:
        sys.exit(
            f"{name} has not been scored: there is no results/{name}.json. "
            f"Fit and score it with python -m benchmarks.lectures."
        )
    for recipe in scored if name == known[0] else (name,):
        print(f"## {recipe}\n\n{record(recipe)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Write the summaries of the results pages, tables and charts, from results/.

    python scripts/results_tables.py          write the pages and docs/assets/records/*.svg
    python scripts/results_tables.py --check  exit with 1 if one of them differs from results/

A summary is the text between two comments of a page; it is stored there because Markdown is also read
without the site.
"""

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]
from docs_shelf import shelf_table  # noqa: E402
from docs_structure import ATTENTION, STRUCTURE, chart, counts, table  # noqa: E402
from docs_summaries import (  # noqa: E402
    benchmarks_table,
    experiments_chart,
    experiments_table,
    inflection_chart,
    pairs_chart,
    pairs_table,
    records_chart,
    records_table,
)
from stored_files import Contents, write_or_check  # noqa: E402

BETWEEN = re.compile(
    r"(<!-- begin: ([a-z ]+) \(written by scripts/results_tables\.py\) -->\n).*?(<!-- end: \2 -->)",
    re.DOTALL,
)
DOCS = ROOT / "docs"
BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "benchmarks.md": {"summary": benchmarks_table},
    "records/index.md": {"summary": records_table},
    "shelf.md": {"shelf": shelf_table},
    "records/structured_attention.md": {"summary": experiments_table},
    "records/pairs_and_documents.md": {"summary": pairs_table},
    "records/does_structure_help.md": {
        "structure": lambda: table(STRUCTURE),
        "counts": lambda: counts(STRUCTURE, "the structured model"),
        "attention": lambda: table(ATTENTION, "attention"),
    },
}
CHARTS: dict[str, Callable[[], str]] = {
    "records": records_chart,
    "inflection": inflection_chart,
    "structured_attention": experiments_chart,
    "pairs_and_documents": pairs_chart,
    "does_structure_help": chart,
}


def filled(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """The text of a page with its current tables."""
    return BETWEEN.sub(lambda found: f"{found[1]}{blocks[found[2]]()}\n{found[3]}", text)


def contents() -> Contents:
    """Every file that this script writes, and its content."""
    pages: dict[Path, Callable[[], str]] = {DOCS / page: partial(_page, page) for page in BLOCKS}
    return pages | {DOCS / f"assets/records/{name}.svg": draw for name, draw in CHARTS.items()}


def _page(page: str) -> str:
    return filled((DOCS / page).read_text(encoding="utf-8"), BLOCKS[page])


if __name__ == "__main__":
    sys.exit(write_or_check(contents(), sys.argv[1:], script="results_tables.py"))

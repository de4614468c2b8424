"""Write the results table and the pictures of README.md from results/.

    python scripts/readme_tables.py          write README.md and docs/assets/*.svg
    python scripts/readme_tables.py --check  exit with 1 if one of them differs from results/

The table is the text between two comments of README.md. The pictures are views of docs/pictures.md; they are
committed because a code host shows README.md without building the site.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]
from docs_views import VIEWS  # noqa: E402
from stored_files import Contents, write_or_check  # noqa: E402

from benchmarks.results import Results  # noqa: E402

README = ROOT / "README.md"
BETWEEN = re.compile(r"(<!-- begin: results [^>]*-->\n).*?(<!-- end: results -->)", re.DOTALL)
PICTURES = {"attention": "view_softmax", "tree": "view_arcs"}


class Task(NamedTuple):
    """One row of the table: a results file, the case in it, and the name of the organizers' figure."""

    title: str
    results: str
    case: str
    baseline: str


TASKS = (
    Task(
        "Pronunciation, US English, 33,344 words", "g2p_english", "eng_us", "organizers' baseline"
    ),
    Task(
        "Pronunciation, 10 languages with 8,000 words each",
        "g2p_medium",
        "mean",
        "organizers' baseline",
    ),
    Task(
        "Pronunciation, 10 languages with 800 words each", "g2p_low", "mean", "organizers' baseline"
    ),
    Task(
        "Inflection, 13 data sets with 10,000 forms each",
        "inflection",
        "mean",
        "organizers' non-neural baseline",
    ),
)


def load(name: str) -> dict[str, float]:
    """The values of one results file by the names of its rows."""
    return {row.name: row.value for row in Results.load(ROOT / f"results/{name}.json").rows}


def row(task: Task) -> str:
    """One line of the table; CPU minutes are the mean over the languages, for one model."""
    values = load(task.results)
    minutes = mean(v for name, v in values.items() if name.endswith(": processor minutes"))
    figures = (
        f"{task.case}: wer",
        f"{task.case}: wer of 3 together",
        f"{task.case}: {task.baseline}",
    )
    cells = [f"{values[name]:.1f}" if name in values else "" for name in figures]
    return "| " + " | ".join([task.title, *cells, f"{minutes:.1f}"]) + " |"


def faster(structure: str, peer: str) -> str:
    """The range over all sizes of how many times faster a training step is than a peer's."""
    name = re.compile(rf"{structure} train \([\d, ]+\) vs {peer}")
    found = [
        value for row_name, value in load("structures_native").items() if name.fullmatch(row_name)
    ]
    return f"{min(found):.0f} to {max(found):.0f}"


def results_table() -> str:
    """The text between the comments of README.md."""
    return "\n".join(
        [
            "Word error rates on the test sets of the SIGMORPHON shared tasks 2021 and 2023, in percent; one model trains",
            "on one CPU core. The baseline is the organizers' own, not the best system of the task: see",
            "[Records](docs/records/index.md).",
            "",
            "| task | one model | 3 models together | baseline | CPU minutes per model |",
            "|---|---:|---:|---:|---:|",
            *map(row, TASKS),
            "",
            "With the C++ kernels and one CPU thread, a training step of a linear-chain CRF is",
            f"{faster('chain', 'pytorch-crf')} times faster than pytorch-crf and {faster('chain', 'torch-struct')} times faster than",
            f"torch-struct; a projective tree is {faster('projective tree', 'torch-struct')} times faster than torch-struct.",
            "",
        ]
    )


def filled(readme: str) -> str:
    """The text of README.md with the current table."""
    return BETWEEN.sub(lambda found: found[1] + results_table() + found[2], readme)


def contents() -> Contents:
    """Every file that this script writes, and its content."""
    files: dict[Path, Callable[[], str]] = {
        README: lambda: filled(README.read_text(encoding="utf-8"))
    }
    return files | {
        ROOT / f"docs/assets/{name}.svg": VIEWS[view] for name, view in PICTURES.items()
    }


if __name__ == "__main__":
    sys.exit(write_or_check(contents(), sys.argv[1:], script="readme_tables.py"))

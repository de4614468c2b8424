"""List the measured figures that miss their targets, and where the documentation explains each.

    python -m benchmarks.shortfalls             reads results/*.json
    python -m benchmarks.shortfalls DIRECTORY

A shortfall is not a failure: the exit code is 0 either way.

A target is a figure that the same data and the same kind of model could reach, or a cost that was asked for. What others
published under other conditions (more data, another test set, an ensemble compared with single models) is a reference:
a row with kind and source, without a target.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from .results import Results, Row

# Where the documentation says what limits a figure: by file of results and beginning of the row's name, the page below
# docs/ and its section. The first fitting line counts.
EXPLAINED = {
    ("babi", "mean: chain"): "records/structured_attention.md#questions-over-facts",
    ("exporting", "bul, float32: calibration"): "export.md#measured",
    ("g2p_low", "mean: wer"): "records/index.md#pronunciation-from-800-words",
    ("g2p_medium", "mean: wer of"): "records/index.md#pronunciation-from-8000-words",
    ("growth", ""): "benchmarks.md#how-cost-grows",
    ("image_to_latex", "rendered_more"): "images.md#results-formulas",
    ("ja_en", "characters: bleu"): "records/index.md#japanese-to-english",
    ("large_corpus", ""): "training.md#a-corpus-that-does-not-fit-into-memory",
    ("scale_bulk_large", ""): "scale.md#bulk-prediction-on-a-ray-cluster",
    ("seq2seq", ""): "benchmarks.md#sequence-to-sequence",
    ("structures", "chain train"): "benchmarks.md#structures",
    ("structures_native", ""): "native.md#measured",
    ("tagging_defaults", "WNUT-17"): "tasks.md#tagging",
    ("training_peers", ""): "benchmarks.md#training",
    (
        "translation_characters",
        "segment - sigmoid",
    ): "records/structured_attention.md#translation-of-characters",
}


class Shortfall(NamedTuple):
    """A row that misses its target."""

    name: str  # of the file
    results: Results
    row: Row

    @property
    def explained(self) -> str | None:
        """The page and the section that explain it."""
        for (name, beginning), place in EXPLAINED.items():
            if name == self.name and self.row.name.startswith(beginning):
                return place
        return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Print every row that misses its target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shortfalls")
    parser.add_argument("directory", type=Path, nargs="?", default=Path("results"))
    found = shortfalls(parser.parse_args(arguments).directory)
    console = Console()
    if not found:
        console.print("nothing falls short")
        return
    table = Table(title=f"{len(found)} figures that miss what was asked for")
    for column in ("made by", "what", "value", "unit", "asked for", "explained in docs/"):
        table.add_column(column, overflow="fold")
    for each in found:
        row = each.row
        asked = f"{row.sense} {row.target:g}"
        place = each.explained or "nowhere"
        table.add_row(each.results.made_by, row.name, f"{row.value:.3g}", row.unit, asked, place)
    console.print(table)


def shortfalls(directory: Path) -> list[Shortfall]:
    """Return every row of the results that misses its target, with its file."""
    files = [(path.stem, Results.load(path)) for path in sorted(directory.glob("*.json"))]
    return [Shortfall(name, results, row) for name, results in files for row in results.missed()]


if __name__ == "__main__":
    main()

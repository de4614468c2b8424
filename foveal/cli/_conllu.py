"""CoNLL-U output with the columns that a model predicts."""

import sys
from collections.abc import Sequence

from ..data import LineReader
from ..serving import Predictor
from ._standard_input import standard_input


def fill_files(predictor: Predictor, files: Sequence[str]) -> None:
    """Print the lines of files, or of the standard input, with predicted columns.

    Args:
        predictor: The predictor of a task that predicts columns of CoNLL-U.
        files: Files, plain, gzip or zstd.
    """
    for reader in map(LineReader, files) if files else [standard_input()]:
        for line in predictor.task.fill(reader, reader.file):
            sys.stdout.write(line + "\n")

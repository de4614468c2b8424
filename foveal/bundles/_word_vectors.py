"""Word vectors: initialize the embedding of the source with vectors from a text file.

    the 0.418 0.24968 -0.41242 ...          a word and its numbers, separated by spaces (GloVe)
    400000 50                               an optional first line: number of words, width (word2vec)

Words without a vector keep their random one. All vectors stay trainable.
"""

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data import LineReader
from ..errors import DataError, SpecError
from ..tasks.base._task import AbstractTask
from ._warm_start import token_tables

_FEW = 0.5  # warn if a smaller fraction of the tokens has a vector


def load_word_vectors(task: AbstractTask[Any], path: str | Path) -> int:
    """Copy the vectors of a file into the embeddings of the source tokens of a task.

    Args:
        task: Task whose weights are changed in place.
        path: File with one word in each line, plain or compressed.

    Returns:
        The number of tokens that have a vector in the file.

    Raises:
        SpecError: The task has no embedding of source tokens, or one of another width.
        DataError: A line is not a word and its numbers, or no token has a vector.
    """
    tables, tokens = _embeddings(task), task.vocabularies.source.tokens
    first = len(task.vocabularies.source) - len(tokens)  # special tokens come before
    rows = {token: first + number for number, token in enumerate(tokens)}
    found = set[str]()
    for word, vector in _read(str(path), tables[0].embedding_dim, rows):
        found.add(word)
        with torch.no_grad():
            for table in tables:
                table.weight[rows[word]] = vector
    if not found:
        raise DataError(
            f"{path}: expected vectors for the tokens of the source, such as {', '.join(map(repr, tokens[:3]))}, got "
            f"none of {len(tokens)}. Check the language, upper and lower case, and the tokenizer: vectors are for "
            f"words, so set source to whitespace."
        )
    if len(found) < _FEW * len(tokens):
        warnings.warn(
            f"{path} has vectors for {len(found)} of {len(tokens)} tokens; the others start from random vectors.",
            stacklevel=2,
        )
    return len(found)


def _embeddings(task: AbstractTask[Any]) -> list[nn.Embedding]:
    """Return the tables with one row for each source token."""
    names = token_tables(task, "source")
    tables = [
        module
        for name, module in task.model.named_modules()
        if isinstance(module, nn.Embedding) and f"{name}.weight" in names
    ]
    if not tables:
        raise SpecError(
            "word_vectors: expected a model with an embedding of its source tokens, got none. Remove word_vectors."
        )
    return tables


def _read(file: str, width: int, known: dict[str, int]) -> Iterator[tuple[str, Tensor]]:
    """Yield the known words of a file and their vectors."""
    lines, is_first = LineReader(file), True
    for line in lines:
        word, *values = line.rstrip().split(" ")
        if lines.line == 1 and len(values) == 1 and word.isdigit():
            continue  # number of words and width
        if is_first and len(values) != width:
            raise SpecError(
                f"{file} has vectors of width {len(values)}, and the embedding has width {width}. Set embedding_size of "
                f"the encoder to {len(values)}."
            )
        is_first = False
        if len(values) < width:
            raise lines.error(
                f"expected a word and {width} numbers, got {len(values)} numbers", "Repair the line"
            )
        if len(values) == width and word in known:  # with more values, the word has spaces
            yield word, _vector(lines, values)


def _vector(lines: LineReader, values: list[str]) -> Tensor:
    try:
        numbers = [float(value) for value in values]
    except ValueError as error:
        raise lines.error(f"expected numbers after the word ({error})", "Repair the line") from None
    if not all(map(math.isfinite, numbers)):
        raise lines.error(
            "expected finite numbers after the word, got inf or nan", "Repair the line"
        )
    return torch.tensor(numbers)

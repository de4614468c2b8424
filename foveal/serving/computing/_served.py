"""A served model: verified, tested, and with a name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...data import Vocabulary
from ...errors import ValueRangeError
from ...tasks import AbstractTask
from ...training._outputs import sample_sources
from .._predictor import Questions

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TRIED = 6  # inputs to test a model on when it is loaded


@dataclass(frozen=True, eq=False)
class Served:
    """A model with its name and its state at loading time."""

    name: str
    folder: Path
    version: str  # the seal of its bundle
    task: AbstractTask[Any]
    example: str  # an initial input for the page
    is_exact: bool  # True if answers are bit-identical in every batch size
    engine: str  # the engine, and the reason for it
    number: int  # its number in the computing process

    @cached_property
    def questions(self) -> Questions:
        """The inputs and settings that the model accepts."""
        return Questions(self.task, self.task.spec)


def named_folders(runs: Sequence[str]) -> dict[str, Path]:
    """Map names to folders: `runs/g2p` is served as g2p, `names=runs/x` as names.

    Args:
        runs: Folders, each with or without a name.

    Returns:
        The folder of each name.

    Raises:
        ValueRangeError: A name is invalid, or two folders have the same name.

    Examples:
        >>> named_folders(["runs/g2p", "names=runs/x"])
        {'g2p': PosixPath('runs/g2p'), 'names': PosixPath('runs/x')}
    """
    found: dict[str, Path] = {}
    for run in runs:
        name, equals, folder = run.partition("=")
        path = Path(folder if equals else run)
        name = name if equals else path.resolve().name
        if not NAME.fullmatch(name):
            raise ValueRangeError(
                f"serve: a name must consist of letters, digits, dots, dashes and underscores, at "
                f"most 64 characters, got {name!r}. Use another name: NAME={path}"
            )
        if name in found:
            raise ValueRangeError(
                f"serve: got two models with the name {name}, {found[name]} and {path}, expected "
                f"different names. Rename one: NAME={path}"
            )
        found[name] = path
    return found


def example_inputs(folder: Path, task: AbstractTask[Any]) -> list[str]:
    """Return inputs to test a model on: samples from training, or else the first tokens of its vocabulary."""
    found = sample_sources(folder, _TRIED)
    vocabulary: Vocabulary = task.vocabularies.source
    tokens = vocabulary.tokens[: 2 * _TRIED]
    tokenizer = task.spec.tokenizer("source")
    join = " ".join if tokenizer is None else tokenizer.decode
    made = [join(tokens[:size]) for size in range(1, 2 * _TRIED, 2)]
    if task.inputs.second:
        made = [f"{text}\t{text}" for text in made]
    return [*found, *made][:_TRIED]

"""A model that is served: loaded from its folder, verified, tried, and under a name."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import Example, Vocabulary
from ..errors import BundleError, ValueRangeError
from ..sealing import MANIFEST
from ..tasks import AbstractTask, PairClassification, PictureTaskSpec, load_bundle
from ..training import sample_sources
from ._predictor import Predictor

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TRIED = 6  # inputs that a model is tried on when it is loaded


@dataclass(frozen=True, eq=False)
class Served:
    """A model under a name, as it was when it was loaded."""

    name: str
    folder: Path
    version: str  # the seal of its bundle
    task: AbstractTask[Any]
    predictor: Predictor
    example: str  # an input to begin with
    is_exact: bool  # whether it answered the same alone and in company, to the last bit


def load_served(name: str, folder: Path) -> Served:
    """The model in a folder, verified and tried; `BundleError` if it is torn or changed."""
    version = _version(folder)
    task = load_bundle(folder)
    if _version(folder) != version:
        raise BundleError(f"{folder}: changed while it was being read. Load it again.")
    if isinstance(task.spec, PictureTaskSpec):  # a request must not name files of this machine
        raise ValueRangeError(
            f"serve: {folder} is {task.spec.kind}, which reads files of images, and the server takes "
            f"texts alone. Use sightline predict."
        )
    predictor = Predictor(task, task.spec)
    inputs = _inputs(folder, task)
    return Served(
        name=name,
        folder=folder,
        version=version,
        task=task,
        predictor=predictor,
        example=inputs[0],
        is_exact=_is_exact(predictor, inputs),
    )


def named_folders(runs: Sequence[str]) -> dict[str, Path]:
    """Folders by the names they are served under: `runs/g2p` is g2p, `names=runs/x` is names.

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
                f"serve: a name must be letters, digits, dots, dashes and underscores, at most 64 of "
                f"them, got {name!r}. Give another: NAME={path}"
            )
        if name in found:
            raise ValueRangeError(
                f"serve: got two models named {name}, {found[name]} and {path}, expected names that "
                f"differ. Give one another: NAME={path}"
            )
        found[name] = path
    return found


def _version(folder: Path) -> str:
    """The seal of a bundle; what it seals is verified when it is loaded."""
    try:
        return str(json.loads((folder / MANIFEST).read_bytes())["seal"])[:12]
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _inputs(folder: Path, task: AbstractTask[Any]) -> list[str]:
    """Inputs to try a model on: samples that training left, or else the first of its symbols."""
    found = sample_sources(folder, _TRIED)
    vocabulary: Vocabulary = task.vocabularies.source
    tokens = vocabulary.tokens[: 2 * _TRIED]
    made = [task.spec.source.decode(tokens[:size]) for size in range(1, 2 * _TRIED, 2)]
    if isinstance(task, PairClassification):
        made = [f"{text}\t{text}" for text in made]
    return [*found, *made][:_TRIED]


def _is_exact(predictor: Predictor, inputs: Sequence[str]) -> bool:
    """Whether inputs are answered the same alone and all together. What torch does only once, such as
    choosing kernels, is done by this too, before the first request.
    """
    settings = predictor.settings(attention=True)
    examples = [Example(text) for text in inputs]
    alone = [predictor.predict([example], settings)[0] for example in examples]
    return predictor.predict([*examples, *examples], settings) == [*alone, *alone]

"""The runs that the explorer asks: loaded, named, and tried once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import Example
from ..errors import ValueRangeError
from ..inspection import explain
from ..tasks import AbstractTask, PairClassification, PictureTaskSpec, TransductionSpec, load_bundle
from ..training import sample_sources

MOST_RUNS = 2  # side by side; more would not fit beside each other
MOST_SYMBOLS = 400  # that are offered while a symbol is typed; a longer list helps nobody


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A model under the name that the page knows it by, and an input to begin with."""

    name: str
    task: AbstractTask[Any]
    example: str = ""

    def to_data(self) -> dict[str, Any]:
        """What the page must know before it asks anything."""
        spec, target = self.task.spec, self.task.vocabularies.target
        symbols = () if target is None or len(target) > MOST_SYMBOLS else target.tokens
        return {
            "name": self.name,
            "task": spec.kind,
            "features": isinstance(spec, TransductionSpec) and spec.features is not None,
            "forcible": isinstance(spec, TransductionSpec),
            "symbols": sorted(symbols),
            "example": self.example,
        }


def load_runs(folders: Sequence[str | Path]) -> tuple[ServedRun, ...]:
    """The models in one or two folders. Each answers once, so that one which cannot be explained is
    refused here, and the first keystroke does not wait for what torch does only once.
    """
    if not 1 <= len(folders) <= MOST_RUNS:
        raise ValueRangeError(
            f"explore: expected one run, or two to compare, got {len(folders)}. "
            f"Name the folders of one or two models that `sightline fit` made."
        )
    runs = list[ServedRun]()
    for name, folder in zip(_names(folders), folders, strict=True):
        task = load_bundle(folder)
        if isinstance(task.spec, PictureTaskSpec):  # a page must not name files of this machine
            raise ValueRangeError(
                f"explore: {folder} is {task.spec.kind}, which reads files of images, and the page "
                f"sends texts alone. Use sightline explain."
            )
        nothing = "\t" if isinstance(task, PairClassification) else ""
        run = ServedRun(name, task, next(iter(sample_sources(Path(folder), 1)), nothing))
        explain(run.task, Example(run.example))
        runs.append(run)
    return tuple(runs)


def _names(folders: Sequence[str | Path]) -> list[str]:
    """The names of folders where they differ, their paths where those do, or with a number.

    >>> _names(["runs/a", "runs/b"]), _names(["old/a", "new/a"]), _names(["runs/a", "runs/a"])
    (['a', 'b'], ['old/a', 'new/a'], ['runs/a', 'runs/a (2)'])
    """
    names = [Path(folder).resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    return [name if names.index(name) == n else f"{name} ({n + 1})" for n, name in enumerate(names)]

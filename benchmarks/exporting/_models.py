"""The fitted models, their exports and their test examples."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.export import ExportOptions, export_bundle
from foveal.export._storage import Storage
from foveal.runtime import Answer, Model, Source, load
from foveal.tasks import AbstractTask, Prediction, Transduction
from foveal.tasks.base._answering import AbstractAnswering
from recipes import exported

from ..records._fitting import fit_case, folder_of

NAME = "exporting"
SEED = 1
TESTED = 200  # examples of a self-test


class Case(NamedTuple):
    """A fitted model and its test examples."""

    name: str
    folder: Path
    task: AbstractTask[Any]
    examples: Sequence[Example]

    @property
    def sources(self) -> list[Source]:
        """The inputs."""
        return [Source(example.text, example.features) for example in self.examples]

    @property
    def is_plain(self) -> bool:
        """Whether the engines without ONNX Runtime can read the model."""
        return isinstance(self.task, Transduction)

    def export(self, storage: Storage = "float32") -> Path:
        """Return the folder of an export, which is written if it does not exist."""
        out = self.folder.with_name(f"{self.folder.name}.{storage}.export")
        if not out.exists():
            examples = self.examples[:TESTED]
            export_bundle(
                self.folder, out, examples, ExportOptions(storage=storage, plain=self.is_plain)
            )
        return out

    def exported(self, storage: Storage = "float32") -> Model:
        """Return an export, loaded."""
        return load(self.export(storage))

    def predictions(self) -> list[Prediction]:
        """Answer all examples with torch, with attention if the model has some."""
        assert isinstance(self.task, AbstractAnswering)
        settings = replace(self.task.prediction, trace=self.task.attends)
        return self.task.predict(self.examples, settings)

    def answers(self, model: Model, batch_size: int = 256) -> list[Answer]:
        """Answer all examples with an export."""
        attention = self.task.attends
        return model.predict(self.sources, attention=attention, batch_size=batch_size)


def fit(cases: Sequence[str], runs: Path) -> None:
    """Train the models. Existing runs are not repeated."""
    for case in cases:
        print(case, flush=True)
        fit_case(exported.recipe(case), SEED, folder_of(runs, NAME, case, SEED))


def case_of(name: str, runs: Path) -> Case:
    """Load a fitted model and its test examples."""
    folder, run = folder_of(runs, NAME, name, SEED), exported.recipe(name)
    assert run.test is not None
    return Case(name, folder, load_bundle(folder), list(run.test))

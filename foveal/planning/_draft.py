"""A planned run that is not written yet: everything is checked before the folder is changed."""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..bundles._outline import num_weights
from ..data import Example
from ..data.streams._prepared import CORPUS, PreparedCorpus
from ..errors import ShapeError, SpecError, size_text
from ..tasks.base._text_spec import AbstractTextSpec
from ..training._loop import CHECKPOINTS
from ..training.checkpoints._inputs import Input, Inputs, check_inputs, write_inputs
from ._choices import Planned
from ._held_out import DATA, Divided

_OWN = ("run.json", CHECKPOINTS)  # names that identify the folder of a run
_BEFORE = (DATA,)  # a run writes this folder before the names above
_NUM_TRIED = 10_000  # examples for which the model is built as a test


class Draft(NamedTuple):
    """A plan, and the division of its training files into training and validation set, if there is one."""

    planned: Planned
    divided: Divided | None = None
    given: Inputs = MappingProxyType({})  # the divided files
    epochs: float | None = None  # the recommended number of epochs, also if the user set another

    def train(self) -> Iterable[Example]:
        """Return the training examples, divided or not."""
        if self.divided is not None:
            return self.divided.train_examples
        train = self.planned.run.train
        assert not isinstance(train, PreparedCorpus)
        return train

    def dev(self) -> Iterable[Example] | None:
        """Return the validation examples."""
        return self.planned.run.dev if self.divided is None else self.divided.dev_examples

    def inputs(self) -> dict[str, list[Input]]:
        """Return the fingerprints of all files that the run will read."""
        known = {} if self.divided is None else self.divided.inputs()
        return self.planned.run.inputs(known)

    def check_model(self) -> None:
        """Raise `SpecError` or `ShapeError` if no model can be built from the settings. The model is built for the
        vocabulary of some examples, without memory for its weights.
        """
        run = self.planned.run
        if not isinstance(run.task, AbstractTextSpec) or isinstance(run.train, PreparedCorpus):
            return
        if run.task.inputs.picture:  # its examples name files
            return
        sample = list(islice(self.train(), _NUM_TRIED))
        try:
            number = num_weights(run.task, sample)
        except RuntimeError as error:
            if isinstance(error, ShapeError):
                raise
            raise SpecError(
                f"cannot build the model with these settings: {error}. Reduce the sizes that you set "
                f"with --set."
            ) from None
        _check_memory(number)

    def check_folder(self, out: Path, *, fresh: bool) -> None:
        """Raise an error if the run cannot be written to the folder."""
        refuse_foreign(out, _OWN)
        if not fresh:
            if any((out / CHECKPOINTS).glob("*")):
                self.check_given()
            self.planned.run.check_resumable(out, self.inputs())

    def check_given(self) -> None:
        """Raise `CheckpointError` if the parts in the folder were made from other files."""
        if self.divided is not None:
            check_inputs(self.divided.folder, self.given)

    def save(self, out: Path) -> None:
        """Write the plan, and the parts of the training files, into the folder."""
        self.planned.save(out)
        self.save_parts()

    def save_parts(self) -> None:
        """Write the parts of the training files, and the fingerprints of these files."""
        if self.divided is not None:
            self.divided.write()
            write_inputs(self.divided.folder, self.given)


def _check_memory(num_weights: int) -> None:
    """Raise `SpecError` if training needs more memory than the machine has."""
    # Weights, gradients and the two moments of the optimizer, four bytes each.
    needed = 4 * 4 * num_weights
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise SpecError(
            f"the model has {num_weights:,} weights, and training needs at least {size_text(needed)} "
            f"of memory; this machine has {size_text(there)}. Reduce the sizes that you set with "
            f"--set."
        )


def refuse_foreign(out: Path, own: tuple[str, ...]) -> None:
    """Raise `SpecError` if a folder has files but none of the names that identify its owner."""
    names = (
        {path.name for path in out.iterdir() if not path.name.startswith(".")}
        if out.is_dir()
        else set()
    )
    if CORPUS in names or (names - set(_BEFORE) and not names & set(own)):
        shown = ", ".join(sorted(names)[:3])
        raise SpecError(
            f"{out}: expected an empty folder or a run to resume, got a folder with other files "
            f"({shown}). Use a new or empty folder as --out."
        )

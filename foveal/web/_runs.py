"""The runs of the explorer: loaded, named, and tested once."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..bundles import load_bundle
from ..data import Example, Picture, PictureQuestion
from ..data._inputs import INLINE
from ..errors import ValueRangeError
from ..inspection import explain
from ..tasks import AbstractTask
from ..tasks.base._writing import AbstractWriting
from ..training._outputs import sample_sources
from ._question import Question, QuestionError

MOST_RUNS = 2  # shown next to each other; more would not fit
MOST_SYMBOLS = 400  # offered as completions of a token; a longer list helps nobody
# A white pixel, the test input of an image model.
BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2"
    "FAAAAABJRU5ErkJggg=="
)
# A tenth of a second of silence, 8-bit WAV at 8 kHz: the test input of a speech model.
SILENCE = (
    INLINE
    + "audio/wav;base64,"
    + b64encode(
        b"RIFF\x44\x03\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00"
        b"data\x20\x03\x00\x00" + b"\x80" * 800
    ).decode("ascii")
)


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A model with its name on the page, and an initial input."""

    name: str
    task: AbstractTask[Any]
    example: str = ""

    @property
    def sees(self) -> bool:
        """Return True if the model reads an image."""
        return self.task.inputs.picture

    @property
    def hears(self) -> bool:
        """Return True if the model reads a recording, which it sees as a spectrogram."""
        return self.task.inputs.audio

    @property
    def reads(self) -> bool:
        """Return True if the model reads a text, with or without an image."""
        return self.task.inputs.text

    def asked(self, question: Question) -> Example:
        """Convert a question to an example. An image arrives as file contents, because a page must not name files of
        this machine.
        """
        example = self._example(question)
        if isinstance(self.task, AbstractWriting) and (question.prefix or question.forced):
            longest = self.task.limit(example) - 1  # without the end token
            num_given = max(len(question.prefix), *(step + 1 for step in question.forced), 0)
            if num_given > longest + 1:
                raise QuestionError(
                    f"prefix, forced: an output for this input has at most {longest} tokens, got "
                    f"{num_given} steps. Use fewer steps."
                )
        return example

    def _example(self, question: Question) -> Example:
        if not self.sees:
            if question.picture:
                raise QuestionError(f"picture: {self.name} reads texts. Remove the image.")
            return Example(question.input, features=question.features)
        if not question.picture.startswith(INLINE):
            raise QuestionError(
                "picture: expected data:image/png;base64, followed by the contents of the file. Drop "
                f"{_noun(self)}."
            )
        picture = Picture.parse(question.picture)
        return Example(PictureQuestion(picture, question.input) if self.reads else picture)

    def to_data(self) -> dict[str, Any]:
        """Return the data that the page needs before its first question."""
        spec, target = self.task.spec, self.task.vocabularies.target
        symbols = () if target is None or len(target) > MOST_SYMBOLS else target.tokens
        return {
            "name": self.name,
            "task": spec.kind,
            "features": self.task.inputs.features,
            "forcible": self.task.is_forcible and not self.sees,
            "symbols": sorted(symbols),
            "example": self.example,
            "sees": self.sees,
            "hears": self.hears,
            "reads": self.reads,
        }


def load_runs(folders: Sequence[str | Path], *, also: Sequence[type] = ()) -> tuple[ServedRun, ...]:
    """Load the models in one or two folders. Each model answers once: this rejects models without explanations, and
    does torch's one-time setup before the first keystroke.
    """
    if not 1 <= len(folders) <= MOST_RUNS:
        raise ValueRangeError(
            f"explore: expected the folders of one or two models, got {len(folders)}. Give one model, "
            f"or two to compare."
        )
    runs = list[ServedRun]()
    for name, folder in zip(_names(folders), folders, strict=True):
        task = load_bundle(folder, also=also)
        run = ServedRun(name, task, _example(task, Path(folder)))
        blank = SILENCE if run.hears else BLANK
        tried = blank if run.sees else ""
        explain(run.task, run.asked(Question(run=name, input=run.example, picture=tried)))
        runs.append(run)
    if len({(run.sees, run.hears) for run in runs}) > 1:
        first, second = map(_noun, runs)
        raise ValueRangeError(
            f"explore: {runs[0].name} and {runs[1].name} have different inputs, {first} and {second}. "
            f"Explore them separately."
        )
    return tuple(runs)


def _noun(run: ServedRun) -> str:
    return "a recording" if run.hears else "an image" if run.sees else "a text"


def _example(task: AbstractTask[Any], folder: Path) -> str:
    """Return an initial text from the run's validation examples."""
    sample = next(iter(sample_sources(folder, 1)), None)
    if task.inputs.picture:
        return "" if sample is None else sample.partition("\t")[2]
    return sample if sample is not None else "\t" * task.inputs.second


def _names(folders: Sequence[str | Path]) -> list[str]:
    """Name folders by their base names if these differ, else by their paths, else with a number.

    Examples:
        >>> _names(["runs/a", "runs/b"]), _names(["old/a", "new/a"]), _names(["runs/a", "runs/a"])
        (['a', 'b'], ['old/a', 'new/a'], ['runs/a', 'runs/a (2)'])
    """
    names = [Path(folder).resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    return [name if names.index(name) == n else f"{name} ({n + 1})" for n, name in enumerate(names)]

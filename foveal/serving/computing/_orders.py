"""What the process that computes is told, and what it says when it could not."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from ...data import Example
from ...errors import FovealError
from ...inspection import explain
from ...tasks import AbstractTask, PredictionSpec
from .._answer import answer_json
from .._predictor import Predictor


@dataclass(frozen=True, eq=False)
class Model:
    """A model in the memory of the process that computes."""

    task: AbstractTask[Any]
    predictor: Predictor


class Answer(NamedTuple):
    """Answer a batch of one size class."""

    number: int  # of the model
    examples: Sequence[Example]
    settings: PredictionSpec
    confidence: bool

    def carried_out(self, model: Model) -> list[str]:
        """An answer to each, as JSON."""
        nbest, confidence = self.settings.nbest, self.confidence
        predictions = model.predictor.answer(self.examples, self.settings)
        return [
            answer_json(example, prediction, nbest=nbest, confidence=confidence)
            for example, prediction in zip(self.examples, predictions, strict=True)
        ]


class Explain(NamedTuple):
    """Say how the model comes to its answer; see `foveal.inspection.explain`."""

    number: int  # of the model
    example: Example
    prefix: Sequence[str]
    forced: Mapping[int, Sequence[float]]

    def carried_out(self, model: Model) -> str:
        """What the page draws, as JSON."""
        explanation = explain(model.task, self.example, prefix=self.prefix, forced=self.forced)
        parts = explanation.to_data().items()
        return f"{{{', '.join(f'{json.dumps(name)}: {_written(part)}' for name, part in parts)}}}"


def _written(part: Any) -> str:
    """A part of an explanation as JSON. The steps of an output are written one by one: a quick order can go
    between two of them, and none between the many weights of all.
    """
    if isinstance(part, list | tuple):
        return (
            f"[{', '.join(json.dumps(one, ensure_ascii=False, allow_nan=False) for one in part)}]"
        )
    return json.dumps(part, ensure_ascii=False, allow_nan=False)


class Order(NamedTuple):
    """What is to be done, and the numbers of models that nobody asks any more."""

    number: int  # of the order
    order: Answer | Explain
    forgotten: Sequence[int]


class Cancel(NamedTuple):
    """End an order: nobody waits for its answer."""

    number: int  # of the order


class Load(NamedTuple):
    """Load the model in a folder, of this version and no other, and try it on some inputs."""

    number: int  # that it is to have
    folder: Path
    version: str
    inputs: Sequence[str]
    specs: Path | None = None  # a Python file with the parts that are not from foveal


class Loaded(NamedTuple):
    """A model is loaded, and has answered."""

    is_exact: bool  # the same alone and in company, to the last bit


class Failed(NamedTuple):
    """What came of an order in place of an answer."""

    text: str
    is_told: bool  # the text is for whoever asked; else it is where our fault lies


def failed(error: Exception) -> Failed:
    """What may be said of an error. The text of a fault stays here: it may quote an input."""
    if isinstance(error, FovealError):
        return Failed(str(error), is_told=True)
    place = extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return Failed(f"{type(error).__name__} in {where}", is_told=False)

"""Messages to and from the computing process."""

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
from .._engines import Engine
from .._predictor import Predictor


@dataclass(frozen=True, eq=False)
class Model:
    """A model in the memory of the computing process."""

    task: AbstractTask[Any]
    predictor: Predictor


class Answer(NamedTuple):
    """Answer a batch of one size class."""

    number: int  # number of the model
    examples: Sequence[Example]
    settings: PredictionSpec
    confidence: bool

    def carried_out(self, model: Model) -> list[str]:
        """Return an answer to each item, as JSON."""
        nbest, confidence = self.settings.nbest, self.confidence
        predictions = model.predictor.answer(self.examples, self.settings)
        return [
            answer_json(example, prediction, nbest=nbest, confidence=confidence)
            for example, prediction in zip(self.examples, predictions, strict=True)
        ]


class Explain(NamedTuple):
    """Explain the answer of a model; see `foveal.inspection.explain`."""

    number: int  # number of the model
    example: Example
    prefix: Sequence[str]
    forced: Mapping[int, Sequence[float]]

    def carried_out(self, model: Model) -> str:
        """Return the data of the page, as JSON."""
        explanation = explain(model.task, self.example, prefix=self.prefix, forced=self.forced)
        parts = explanation.to_data().items()
        return f"{{{', '.join(f'{json.dumps(name)}: {_written(part)}' for name, part in parts)}}}"


def _written(part: Any) -> str:
    """Serialize a part of an explanation as JSON. The steps of an output are written one by one: a quick order can
    interrupt between two of them, but not within one large list of weights.
    """
    if isinstance(part, list | tuple):
        return (
            f"[{', '.join(json.dumps(one, ensure_ascii=False, allow_nan=False) for one in part)}]"
        )
    return json.dumps(part, ensure_ascii=False, allow_nan=False)


class Order(NamedTuple):
    """A message with the work to do, and the numbers of models that can be freed."""

    number: int  # number of the order
    order: Answer | Explain
    forgotten: Sequence[int]


class Cancel(NamedTuple):
    """Cancel an order: nobody waits for its answer."""

    number: int  # number of the order


class Load(NamedTuple):
    """Load this version of the model in a folder, and test it on some inputs."""

    number: int  # the number to give it
    folder: Path
    version: str
    inputs: Sequence[str]
    specs: Path | None = None  # a Python file with the parts that are not from foveal
    engine: Engine = "auto"
    device: str = "cpu"


class Loaded(NamedTuple):
    """The reply after a model was loaded and tested."""

    is_exact: bool  # True if answers are bit-identical in every batch size
    engine: str  # the engine, and the reason for it


class Failed(NamedTuple):
    """The reply to an order that failed."""

    text: str
    is_told: bool  # True if the text is for the client; otherwise it is the location of our bug


def failed(error: Exception) -> Failed:
    """Return the reply for an error. The message of a bug stays in this process: it may quote an input."""
    if isinstance(error, FovealError):
        return Failed(str(error), is_told=True)
    place = extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return Failed(f"{type(error).__name__} in {where}", is_told=False)

"""Engines, which compute the answers of a model: torch, or ONNX Runtime for models that have an export.

ONNX Runtime answers single inputs several times faster. The answers are equal up to rounding, which a comparison on
examples of the run confirms before the engine is used.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ..data import Example
from ..errors import DeviceError, ExportError, MissingPackageError
from ..extras import require
from ..tasks import AbstractTask, TransductionEnsemble
from ..tasks.base._answerer import AbstractAnswerer

Engine: TypeAlias = Literal["auto", "torch", "onnx"]


class Chosen(NamedTuple):
    """An engine, ready to answer, and the reason for it."""

    answerer: AbstractAnswerer
    engine: Literal["torch", "onnx"]
    why: str

    def __str__(self) -> str:
        return f"engine: {self.engine} ({self.why})"


def choose_engine(
    task: AbstractTask[Any] | TransductionEnsemble,
    engine: Engine,
    examples: Callable[[], Sequence[Example]],
) -> Chosen:
    """Return an engine for a task.

    Args:
        task: Trained task, or an ensemble.
        engine: `auto` selects ONNX Runtime if it is installed, the model has an export, and both engines give the same
            answers to the examples.
        examples: Returns examples for the comparison; called only if ONNX Runtime may be used.

    Returns:
        The engine.

    Raises:
        DeviceError: The engine onnx is requested for a model on a GPU.
        ExportError: The engine onnx is requested, and a part of the model has no export or an answer differs.
        MissingPackageError: The engine onnx is requested and not installed.
    """
    if engine == "torch":
        return Chosen(task.answerer(), "torch", "requested")
    if task.device.type != "cpu":
        if engine == "onnx":
            raise DeviceError(
                f"--engine onnx: ONNX Runtime computes on the CPU here, expected a model on cpu, got "
                f"one on {task.device}. Use --device cpu, or --engine torch."
            )
        return Chosen(task.answerer(), "torch", f"the model is on {task.device}")
    try:
        return _with_onnx(task, examples, is_requested=engine == "onnx")
    except (ExportError, MissingPackageError) as error:
        if engine == "onnx":
            raise type(error)(f"--engine onnx: {error} Or use --engine auto.") from error
        return Chosen(task.answerer(), "torch", reason_of(error))


def reason_of(error: Exception) -> str:
    """Return the first sentence of an error about an engine, which quotes no input."""
    return str(error).partition(". ")[0]


def _with_onnx(
    task: AbstractTask[Any] | TransductionEnsemble,
    examples: Callable[[], Sequence[Example]],
    *,
    is_requested: bool,
) -> Chosen:
    if isinstance(task, TransductionEnsemble):
        raise ExportError("an ensemble has no export. Use one model.")
    require("export", "onnx", "onnxruntime", needed_by="The engine onnx")
    from ..export import ExportedAnswerer  # noqa: PLC0415 - an extra

    answerer, given = ExportedAnswerer(task), examples()
    if given:
        answerer.check(given)
        return Chosen(answerer, "onnx", f"the same answers as torch to {len(given)} examples")
    if is_requested:
        return Chosen(
            answerer, "onnx", "not compared with torch: no examples of the run were found"
        )
    raise ExportError("no examples of the run were found to compare ONNX Runtime with torch.")

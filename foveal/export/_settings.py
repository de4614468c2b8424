"""`model.json`: what a runtime must know about a model besides its graph."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import singledispatch
from typing import Any

from ..specs import to_data
from ..tasks import AbstractTask, Transduction
from .graphs._refusal import refusal

# Longer sources are refused by runtimes: a graph must not be asked for memory without limit.
MAX_SOURCE = 4_000


@singledispatch
def task_settings(task: AbstractTask[Any]) -> dict[str, Any]:
    """Return the settings of a task for its runtimes; register a function for a task of your own.

    Args:
        task: Task to export.

    Returns:
        Data for JSON.

    Raises:
        ExportError: There are no runtimes for this kind of task.
    """
    raise refusal("task", task.spec)


@task_settings.register
def _(task: Transduction) -> dict[str, Any]:
    spec = task.spec
    return {
        "task": "transduction",
        "source": to_data(spec.source),
        "target": to_data(spec.target),
        "features": None if spec.features is None else to_data(spec.features),
        "outputs": spec.outputs,
        "slots": spec.num_slots,
        "points": spec.model.decoder.points,
        "attention": task.attention,
        "prediction": asdict(task.prediction),
        "lengths": asdict(task.vocabularies.lengths),
        "calibration": task.calibration.to_data(),
        "max_source": MAX_SOURCE,
    }


def vocabulary_data(task: AbstractTask[Any]) -> dict[str, Any]:
    """Return the tokens and labels of a task, for `vocabulary.json`."""
    found = task.vocabularies
    return {
        "source": found.source.tokens,
        "target": None if found.target is None else found.target.tokens,
        "features": None if found.features is None else found.features.tokens,
        "labels": None if found.labels is None else found.labels.names,
    }


def about_data(license: str | None, data: Sequence[str]) -> dict[str, Any]:  # noqa: A002 - the field's name
    """Return the license of the weights and the lines about their training data."""
    return {"license": license, "data": list(data)}

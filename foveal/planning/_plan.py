"""Plan a whole run for files, with a reason for every setting that is not a default."""

from collections.abc import Callable, Iterable

from ..data import Example, SourceSpec
from ..training._run import Run
from ..training._spec import TrainingSpec
from ._choices import Choice, Planned
from ._recommending import Recommendation, recommend


def plan(
    train: SourceSpec,
    dev: SourceSpec | None = None,
    test: SourceSpec | None = None,
    *,
    examples: Iterable[Example] | None = None,
    by: Callable[[Iterable[Example]], Recommendation] = recommend,
) -> Planned:
    """Plan the run for files: the task, the tokenization, the size of the model and the length of training.

    The training files are read as a stream, more than once.

    Args:
        train: Training files.
        dev: Validation files.
        test: Test files.
        examples: Examples of `train`, if they are on another machine or not written yet.
        by: Chooses the task: `recommend` for texts, `recommend_pictures` for images.

    Returns:
        The run, and the choices that led to it.
    """
    found = by(train if examples is None else examples)
    run = Run(
        task=found.task, train=train, dev=dev, test=test, training=TrainingSpec(**found.training)
    )
    choices = (Choice(_path(path), "data", sentence) for path, sentence in found.reasons)
    return Planned(run, tuple(choices))


def _path(path: str) -> str:
    """Return the path of a recommended setting in a run."""
    if path == "kind":
        return "task"
    return path if path.startswith("training.") else f"task.{path}"

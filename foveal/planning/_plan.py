"""From files to a whole run, with a reason for everything that is not simply a default."""

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
    """The run for these files: what the task is, how texts are cut into symbols, how large the
    model is and how long it is trained. The training files are read as a stream, more than once.
    `examples` are those of `train`, where they lie elsewhere than on this machine or are not written yet. `by`
    chooses the task: `recommend` for texts, `recommend_pictures` for images.
    """
    found = by(train if examples is None else examples)
    run = Run(
        task=found.task, train=train, dev=dev, test=test, training=TrainingSpec(**found.training)
    )
    choices = (Choice(_path(path), "data", sentence) for path, sentence in found.reasons)
    return Planned(run, tuple(choices))


def _path(path: str) -> str:
    """Where a recommended setting stands in a run."""
    if path == "kind":
        return "task"
    return path if path.startswith("training.") else f"task.{path}"

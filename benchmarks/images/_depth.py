"""Classification of shapes by encoders of several depths, with and without residual connections.

results/residual_depth.json
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from torch.nn import Conv2d

from foveal.tasks import ImageClassification
from recipes import residual_depth

from ._scored import Scored, score_cases

NAME = "residual_depth"


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Update the results file with the cases that were fitted."""
    folders = (runs, results)
    score_cases(
        NAME, residual_depth.recipe, cases, seeds, folders, aims={}, more=_convolutions, data={}
    )


def _convolutions(case: str, scored: Scored) -> Mapping[str, tuple[float, str]]:
    """Return the depth of the encoder, and the accuracy on the training images."""
    del case
    task = scored.task
    assert isinstance(task, ImageClassification)
    depth = sum(isinstance(part, Conv2d) for part in task.model.modules())
    seen = task.evaluate(list(residual_depth.part("train")))
    return {"convolutions": (float(depth), ""), "accuracy in training": (seen.value, "%")}

"""Questions about images: accuracy by type of question, with and without attention.

results/easy_vqa.json
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from recipes import easy_vqa

from ._scored import Scored, score_cases

NAME = "easy_vqa"
AIMS = {"soft: accuracy": 99.0}


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the results file, and keep the figures of its other cases."""
    names = [f"{split}.images.zip" for split in ("train", "test")]
    data = {name: easy_vqa.DATA / "easy_vqa" / name for name in names}
    folders = (runs, results)
    score_cases(NAME, easy_vqa.recipe, cases, seeds, folders, aims=AIMS, more=_nothing, data=data)


def _nothing(case: str, scored: Scored) -> Mapping[str, tuple[float, str]]:
    del case, scored
    return {}

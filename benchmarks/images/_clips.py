"""Clips: classification and captioning with attention over time.

results/clips.json
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from recipes import clips

from ._scored import Scored, score_cases

NAME = "clips"
AIMS = {"label_global: accuracy": 95.0, "caption_global: exact_match": 95.0}


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the results file, and keep the figures of its other cases."""
    data = {
        "manifest.json": clips.FOLDERS["label"] / "manifest.json",
        "manifest.json of captions": clips.FOLDERS["caption"] / "manifest.json",
    }
    score_cases(
        NAME, clips.recipe, cases, seeds, (runs, results), aims=AIMS, more=_frames, data=data
    )


def _frames(case: str, scored: Scored) -> Mapping[str, tuple[float, str]]:
    """Return the number of frames that the model reads."""
    del case
    return {"frames": (float(scored.task.spec.max_frames), "")}

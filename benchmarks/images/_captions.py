"""Six right and six wrong captions, with the cells that the model read for each word.

    results/caption_pictures.json           the fraction of captions that are right, and the cost
    results/shown/caption_pictures.json     images, captions and attention

A rule chooses them: the first six scenes of the part `held_out` whose caption is right, and the first six whose caption
is wrong. Captions of more than ten words are left out, because their pictures are too wide for a page.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.tasks import Captioning, PredictionSpec
from recipes import scene_captions

from ..lectures._comparison import spec_of
from ..lectures._shown import Shown, save_shown
from ..records._fitting import Cost, folder_of
from ..results import Results, Row

NAME = "caption_pictures"
CASES = ("brief",)
NUM_EACH = 6
MOST_WORDS = 10


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write both files."""
    folder = folder_of(runs, NAME, cases[0], seeds[0])
    task = load_bundle(folder)
    assert isinstance(task, Captioning)
    examples = list[Example](scene_captions.part("held_out", is_brief=True))
    answers = task.predict(examples, PredictionSpec(beam_size=1, trace=True))
    chosen: dict[bool, list[Shown]] = {True: [], False: []}
    num_right = 0
    for example, answer in zip(examples, answers, strict=True):
        is_right, trace = answer.output == example.target, answer.trace
        num_right += is_right
        if len(chosen[is_right]) < NUM_EACH and len(answer.output.split()) <= MOST_WORDS:
            assert trace is not None
            said = (
                answer.output if is_right else f"{answer.output}, where {example.target} is right"
            )
            image = np.asarray(task.picture_seen(example))
            chosen[is_right].append(Shown(said, trace, image))
    for is_right, name in ((True, "right"), (False, "wrong")):
        save_shown(results, NAME, name, chosen[is_right])
    rows = (
        Row(
            name="brief: right", value=100 * num_right / len(examples), unit="%", seeds=(seeds[0],)
        ),
        Row(name="brief: CPU minutes", value=Cost.load(folder).processor_minutes, unit="min"),
    )
    made = Results.here(f"python -m benchmarks.images score {NAME}").with_rows(rows)
    spec = {case: spec_of(scene_captions.recipe(case)) for case in cases}
    replace(made, spec=spec).save(results / f"{NAME}.json")

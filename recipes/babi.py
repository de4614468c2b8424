"""bAbI: questions about stories that need two or three facts, 1,000 questions for each task.

    foveal fit --recipe recipes/babi.py --out runs/facts                   task 2, a chain of two facts
    foveal fit --recipe recipes/babi.py:soft_2 --out runs/soft             or :soft_3, :chain_11, ...
    python -m benchmarks.lectures fit babi --runs runs                        all tasks, seven restarts each
    python -m benchmarks.lectures fit babi --runs runs --seeds 1 2 3          more of them
    python -m benchmarks.lectures score babi --runs runs

    soft     a memory network: softmaxes over facts, one after the other (Sukhbaatar et al. 2015)
    chain    one distribution over sequences of facts (Kim et al. 2017, section 4.3)

The tasks are the same as in the paper: ten in which every question has two or three supporting facts, and two in which
the number varies; only the answers of the latter are scored. The validation set has 100 of the 1,000 training questions,
as in `en-valid` of the data. It selects the best weights of a run, and the best run of a task over all seeds and settings.
Both kinds of steps are trained with the same seven settings. The model does not see which facts support an answer.
`foveal data get babi_v1-2` gets the data. The recipe unpacks the archive once, into `.cache/babi` of the checkout.

Reference: Weston et al. 2015, Towards AI-complete question answering.
"""

import tarfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foveal.data import Babi, babi
from foveal.datasets import data_folder
from foveal.datasets._unpacking import unpack
from foveal.models import ChainStepsSpec, MemoryNetworkSpec, SoftStepsSpec, StepsSpec
from foveal.tasks import QuestionAnsweringSpec
from foveal.training import Run, TrainingSpec

ROOT = Path(__file__).resolve().parents[1]
DATA = data_folder()
ARCHIVE, FOLDER = DATA / "babi_v1-2/en-valid.tar.gz", ROOT / ".cache/babi"
# Number of steps of each task, as in the paper: the number of supporting facts. Questions of tasks 7 and 8
# have one to eight supporting facts.
TASKS = {2: 2, 3: 3, 7: 3, 8: 3, 11: 2, 13: 2, 14: 2, 15: 2, 16: 3, 17: 2, 18: 2, 19: 2}
VARYING = (7, 8)
STEPS: dict[str, StepsSpec] = {"soft": SoftStepsSpec(), "chain": ChainStepsSpec()}


class Setting(NamedTuple):
    """What differs between the restarts of a task."""

    # Standard deviation of the initial word vectors; None: 2 / sqrt of their width.
    init_std: float | None
    rate: float  # learning rate
    tied: bool = False  # adjacent tables, and answers scored by the vectors of their words
    positions: bool = True
    ages: bool = True


SETTINGS: dict[str, Setting] = {
    "large_slow": Setting(None, 5e-3),
    "large_fast": Setting(None, 1e-2),
    "small_slow": Setting(0.1, 5e-3),
    "small_fast": Setting(0.1, 1e-2),
    "tied_words": Setting(0.4, 1e-2, tied=True, positions=False),
    "tied_bags": Setting(0.4, 1e-2, tied=True, positions=False, ages=False),
    "tied_places": Setting(0.4, 1e-2, tied=True),
}
CASES = tuple(
    f"{steps}_{task}_{setting}" for task in TASKS for steps in STEPS for setting in SETTINGS
)


def recipe(case: str = "chain_2") -> Run:
    """Return the run of one task with one kind of steps and one of the settings: less than a minute."""
    steps, task, *setting = case.split("_", 2)
    chosen = SETTINGS[setting[0] if setting else "large_slow"]
    return Run(
        task=QuestionAnsweringSpec(
            model=MemoryNetworkSpec(
                embedding_size=20,
                num_steps=TASKS[int(task)],
                steps=STEPS[steps],
                max_facts=50 if chosen.ages else None,
                random_noise=0.2 if chosen.ages else 0.0,
                init_std=chosen.init_std,
                tying="adjacent" if chosen.tied else "layer_wise",
                tie_output=chosen.tied,
                positions=chosen.positions,
            )
        ),
        train=part(task, "train"),
        dev=part(task, "valid"),
        test=part(task, "test"),
        training=TrainingSpec(
            epochs=60.0,
            batch_size=32,
            learning_rate=chosen.rate,
            clip_norm=40.0 if chosen.tied else 1.0,  # 40: as in both papers
            seed=1,
        ),
    )


soft_2, soft_3, soft_7, soft_8, soft_11, soft_13 = (
    partial(recipe, f"soft_{task}") for task in (2, 3, 7, 8, 11, 13)
)
soft_14, soft_15, soft_16, soft_17, soft_18, soft_19 = (
    partial(recipe, f"soft_{task}") for task in (14, 15, 16, 17, 18, 19)
)
chain_2, chain_3, chain_7, chain_8, chain_11, chain_13 = (
    partial(recipe, f"chain_{task}") for task in (2, 3, 7, 8, 11, 13)
)
chain_14, chain_15, chain_16, chain_17, chain_18, chain_19 = (
    partial(recipe, f"chain_{task}") for task in (14, 15, 16, 17, 18, 19)
)


def part(task: str, name: str) -> Babi:
    """Return one of the three files of a task. The first call unpacks the archive."""
    if not FOLDER.exists():
        with tarfile.open(ARCHIVE) as archive:
            unpack(archive, FOLDER)
    return babi(FOLDER / f"en-valid/qa{task}_{name}.txt")

"""Questions about stories whose answers take two or three facts: bAbI, 1,000 questions of each task.

    foveal fit --recipe recipes/babi.py --out runs/facts                   task 2, a chain of two facts
    foveal fit --recipe recipes/babi.py:soft_2 --out runs/soft             or :soft_3, :chain_11, ...
    python -m benchmarks.lectures fit babi --runs runs                        all tasks, four restarts each
    python -m benchmarks.lectures fit babi --runs runs --seeds 1 2 3          more of them
    python -m benchmarks.lectures score babi --runs runs

    soft     a memory network: softmaxes over facts, one after the other (Sukhbaatar et al. 2015)
    chain    one distribution over sequences of facts (Kim et al. 2017, section 4.3)

The tasks are those of the paper: ten whose every question has two supporting facts, or three, and two
where their number varies, which count for answers alone. Of their 1,000 training
questions 100 are set apart to choose by, as in `en-valid` of the data: the best weights of a run, and then
the best of all runs of a task, whatever their seeds and settings. Settings are the same four for both kinds of
steps, so that neither has been given more care. The model is never told which facts support an answer.
`foveal data get babi_v1-2` gets the data; the archive is unpacked once, into
`.cache/babi` of the checkout.

Reference: Weston et al. 2015, Towards AI-complete question answering.
"""

import tarfile
from functools import partial
from pathlib import Path

from foveal.data import Babi, babi
from foveal.datasets import data_folder
from foveal.models import ChainStepsSpec, MemoryNetworkSpec, SoftStepsSpec, StepsSpec
from foveal.tasks import QuestionAnsweringSpec
from foveal.training import Run, TrainingSpec

ROOT = Path(__file__).resolve().parents[1]
DATA = data_folder()
ARCHIVE, FOLDER = DATA / "babi_v1-2/en-valid.tar.gz", ROOT / ".cache/babi"
# Steps of each task, as in the paper: as many as there are supporting facts. Questions of tasks 7 and 8
# have one to eight.
TASKS = {2: 2, 3: 3, 7: 3, 8: 3, 11: 2, 13: 2, 14: 2, 15: 2, 16: 3, 17: 2, 18: 2, 19: 2}
VARYING = (7, 8)
STEPS: dict[str, StepsSpec] = {"soft": SoftStepsSpec(), "chain": ChainStepsSpec()}
# Deviation of what words begin with (none: 2 / sqrt of their width), and the learning rate.
SETTINGS: dict[str, tuple[float | None, float]] = {
    "large_slow": (None, 5e-3),
    "large_fast": (None, 1e-2),
    "small_slow": (0.1, 5e-3),
    "small_fast": (0.1, 1e-2),
}
CASES = tuple(
    f"{steps}_{task}_{setting}" for task in TASKS for steps in STEPS for setting in SETTINGS
)


def recipe(case: str = "chain_2") -> Run:
    """One task, read by one kind of steps, with one of the settings: less than a minute."""
    steps, task, *setting = case.split("_", 2)
    init_std, rate = SETTINGS[setting[0] if setting else "large_slow"]
    return Run(
        task=QuestionAnsweringSpec(
            model=MemoryNetworkSpec(
                embedding_size=20,
                num_steps=TASKS[int(task)],
                steps=STEPS[steps],
                max_facts=50,
                random_noise=0.2,
                init_std=init_std,
            )
        ),
        train=part(task, "train"),
        dev=part(task, "valid"),
        test=part(task, "test"),
        training=TrainingSpec(epochs=60.0, batch_size=32, learning_rate=rate, seed=1),
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
    """One of a task's three files, unpacked first if none is."""
    if not FOLDER.exists():
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(FOLDER, filter="data")
    return babi(FOLDER / f"en-valid/qa{task}_{name}.txt")

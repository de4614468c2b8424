"""Questions about images of one shape: easy-VQA, 48,248 questions, 13 answers.

    foveal fit --recipe recipes/easy_vqa.py --out runs/vqa                     or :none, :concatenated
    python -m benchmarks.images fit easy_vqa --runs runs                          all cases
    python -m benchmarks.images score easy_vqa --runs runs

    soft            the question attends to the cells of the image grid by a softmax
    none            the question reads the mean of the grid
    concatenated    the same, and the last layers read [mean; question]; the others modulate the image by the question

A tenth of the training images is the validation set. `foveal data get easy_vqa` gets the
data.

Reference: Zhou 2019, easy-VQA.
"""

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

from foveal.data import EasyVqa, ImageSpec, easy_vqa
from foveal.datasets import data_folder
from foveal.models import (
    ImageEncoderSpec,
    PerQueryAttentionSpec,
    SoftmaxSpec,
    TextEncoderSpec,
    VQAModelSpec,
)
from foveal.tasks import VisualQuestionAnsweringSpec
from foveal.training import Run, TrainingSpec
from recipes.whole_files import write_whole

ROOT = Path(__file__).resolve().parents[1]
DATA = data_folder()
FOLDER = ROOT / ".cache/easy_vqa"
SIDE = 64  # pixels
NUM_DEV = 400  # training images in the validation set
ATTENTIONS: dict[str, PerQueryAttentionSpec | None] = {
    "soft": SoftmaxSpec(),
    "none": None,
    "concatenated": None,
}
CASES = tuple(ATTENTIONS)


def recipe(case: str = "soft") -> Run:
    """Return the run on questions about images, with or without attention to the grid."""
    return Run(
        task=VisualQuestionAnsweringSpec(
            image=ImageSpec(height=SIDE, width=SIDE),
            model=VQAModelSpec(
                encoder=ImageEncoderSpec(sizes=(16, 32, 64, 64)),
                question=TextEncoderSpec(embedding_size=32, hidden_size=32, dropout=0.0),
                attention=ATTENTIONS[case],
                hidden_size=64,
                fusion="concatenation" if case == "concatenated" else "modulation",
            ),
        ),
        train=part("train"),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(
            epochs=20.0,
            batch_size=240,  # questions about roughly 25 images; each image is encoded once
            learning_rate=2e-3,
            warmup_steps=100,
            bf16=True,
            evaluate_every=145,  # an epoch, because validations take longer than steps
            validation_size=500,
            seed=1,
        ),
    )


soft, none, concatenated = (partial(recipe, case) for case in CASES)


def part(name: str) -> EasyVqa:
    """Return one of three parts. The first call writes the questions of the part."""
    split = "test" if name == "test" else "train"
    path = FOLDER / f"{name}.json"
    if not path.exists():
        with gzip.open(
            DATA / f"easy_vqa/{split}/questions.json.gz", "rt", encoding="utf-8"
        ) as file:
            rows: list[list[Any]] = json.load(file)
        is_dev = [row[2] < NUM_DEV for row in rows]
        wanted = {"train": False, "dev": True}.get(name)
        chosen = [row for row, dev in zip(rows, is_dev, strict=True) if wanted in (None, dev)]
        write_whole(path, [json.dumps(chosen)])
    return easy_vqa(path, DATA / f"easy_vqa/{split}.images.zip")

"""Captions of generated scenes: colored shapes, their number, and their relative positions.

    foveal fit --recipe recipes/scene_captions.py --out runs/scenes            or :none, :hard, ...
    python -m benchmarks.images fit scene_captions --runs runs                    all cases
    python -m benchmarks.images score scene_captions --runs runs

A case is how the decoder reads the grid of the image:

    none        no attention: the decoder reads only the mean of the grid
    soft        softmax over all cells (Xu et al. 2015)
    hard        one cell, sampled during training
    path        at most one cell of each column: a chain over columns
    segment     runs of cells within rows: a chain along each row
    unsmoothed  as soft, but without label smoothing: the model also memorizes which attributes occur together

`brief` is as soft, with ten epochs of 15,000 scenes: this model still makes mistakes to look at.

The test scenes contain combinations of size, color and shape that training does not have. `score` also tests seen
combinations, and pairs of color and shape that training does not have in any size. The location of each object is
known: `score` measures the fraction of attention on the object when its word is written. The recipe draws the scenes
once, into `.cache/scenes` of the checkout.
"""

from functools import partial
from pathlib import Path

from foveal.data import ImageList, ImageSpec, image_list
from foveal.models import (
    AttentionSpec,
    BilinearSpec,
    CaptionerSpec,
    DecoderSpec,
    HardSpec,
    ImageEncoderSpec,
    PathSpec,
    SegmentSpec,
    SoftmaxSpec,
)
from foveal.tasks import CaptioningSpec
from foveal.training import Run, TrainingSpec
from recipes.rendered.scenes import draw_scenes
from recipes.rendered.writing import write_pictures

FOLDER = Path(__file__).resolve().parents[1] / ".cache/scenes"
SIDE = 80  # pixels
# The last stage has stride 1: a cell then sees 31 pixels, which is a whole shape.
STRIDES = ((2, 2), (2, 2), (2, 2), (1, 1))
COUNTS = {"held_out": 1000, "held_out_pairs": 1000, "test": 1000, "dev": 500, "train": 50_000}
SEED = 1
# Bilinear scores: additive scores of 100 cells take a fifth of the training time. Without scaling, the
# softmax converged to one blank cell within the first hundred updates.
SCORER = BilinearSpec(scaled=True)
ATTENTIONS: dict[str, AttentionSpec | None] = {
    "none": None,
    "soft": SoftmaxSpec(scorer=SCORER),
    "hard": HardSpec(scorer=SCORER),
    "path": PathSpec(scorer=SCORER),
    "segment": SegmentSpec(scorer=SCORER, total=1.0),
}
CASES = (*ATTENTIONS, "unsmoothed")
BRIEF = {"held_out": 300, "dev": 200, "train": 15_000}  # scenes of the case brief


def recipe(case: str = "soft") -> Run:
    """Return a captioning run with one kind of attention."""
    is_smooth, is_brief = case != "unsmoothed", case == "brief"
    return Run(
        task=CaptioningSpec(
            image=ImageSpec(height=SIDE, width=SIDE),
            model=CaptionerSpec(
                encoder=ImageEncoderSpec(
                    sizes=(24, 48, 96, 96), strides=STRIDES, positions=True, norm="batch"
                ),
                decoder=DecoderSpec(
                    embedding_size=48,
                    hidden_size=128,
                    dropout=0.0,
                    attention=ATTENTIONS.get(case, ATTENTIONS["soft"]),
                ),
            ),
            label_smoothing=0.03 if is_smooth else 0.0,
        ),
        train=part("train", is_brief=is_brief),
        dev=part("dev", is_brief=is_brief),
        test=part("held_out", is_brief=is_brief),
        training=TrainingSpec(
            epochs=10.0 if is_brief else 7.0,
            batch_size=48,
            learning_rate=2e-3,
            warmup_steps=100,
            validation_size=200,
            seed=1,
        ),
    )


none, soft, hard, path, segment, unsmoothed = (partial(recipe, case) for case in CASES)
brief = partial(recipe, "brief")


def part(name: str, *, is_brief: bool = False) -> ImageList:
    """Return one of the parts. The first call draws all of them."""
    folder, counts = (FOLDER / "brief", BRIEF) if is_brief else (FOLDER, COUNTS)
    if not (folder / "manifest.json").exists():
        drawn = {name: (draw_scenes(SEED, name), count) for name, count in counts.items()}
        write_pictures(folder, drawn, {"what": "scenes", "seed": SEED})
    return image_list(folder / f"{name}.tsv", folder / "images.zip")

"""Clips of moving shapes: the motion of the first shape as a label, and the motion of both as a caption.

    foveal fit --recipe recipes/clips.py --out runs/clips              or :label_local, :caption_global, ...
    python -m benchmarks.images fit clips --runs runs                     all cases
    python -m benchmarks.images score clips --runs runs

A convolutional network encodes each frame, and a recurrent network reads the frames in order. The cases differ in how
its states are read:

    label_none        only the last states                caption_none      only the last states
    label_global      softmax over all frames             caption_global    softmax over all frames
    label_local       around one position in time         caption_local     around one position in time

A single frame does not show the motion. The recipe draws the clips once: clips with labels into `.cache/clips` of the
checkout, and clips with captions, four times as many, into `.cache/told_clips`.

Reference: Luong et al. 2015 (local attention); Yao et al. 2015 (attention over frames).
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from foveal.data import ImageList, ImageSpec, image_list
from foveal.models import (
    CaptionerSpec,
    DecoderSpec,
    FramesEncoderSpec,
    ImageEncoderSpec,
    LocalSpec,
    SoftmaxSpec,
    VideoClassifierSpec,
)
from foveal.tasks import CaptioningSpec, VideoClassificationSpec
from foveal.training import Run, TrainingSpec
from recipes.rendered.clips import draw_clips
from recipes.rendered.writing import write_pictures

CACHE = Path(__file__).resolve().parents[1] / ".cache"
FOLDERS = {"label": CACHE / "clips", "caption": CACHE / "told_clips"}
SIDE, NUM_FRAMES = 56, 12
# The last stage has stride 1: a cell then sees 31 pixels, which is a whole shape.
STRIDES = ((2, 2), (2, 2), (2, 2), (1, 1))
NUM_HELD_OUT = {"test": 500, "dev": 300}
# Two shapes have thousands of combinations of motions: with 6,000 clips, the model memorizes the captions.
NUM_TRAIN = {"label": 6000, "caption": 24_000}
EPOCHS = {"label": 10.0, "caption": 8.0}
SEED = 1
ATTENTIONS = {"none": None, "global": SoftmaxSpec(), "local": LocalSpec(window=3.0)}
CASES = tuple(f"{what}_{kind}" for what in ("label", "caption") for kind in ATTENTIONS)


def recipe(case: str = "label_global") -> Run:
    """Return the run from clips to labels or captions with one kind of attention over time."""
    what, _, kind = case.partition("_")
    image, attention = ImageSpec(height=SIDE, width=SIDE), ATTENTIONS[kind]
    encoder = FramesEncoderSpec(
        frame=ImageEncoderSpec(
            sizes=(16, 32, 64, 64), strides=STRIDES, positions=True, norm="batch"
        ),
        hidden_size=64,
        dropout=0.0,
    )
    if what == "caption":  # a caption names two shapes, which the mean over a frame would mix
        # With residual connections, the features of a frame reach the decoder from the first update.
        encoder = replace(encoder, regions=2, hidden_size=128, residual=True)
    if what == "label":
        task = VideoClassificationSpec(
            image=image,
            max_frames=NUM_FRAMES,
            model=VideoClassifierSpec(
                encoder=encoder, pooling="summary" if attention is None else attention
            ),
        )
    else:
        task = CaptioningSpec(
            image=image,
            max_frames=NUM_FRAMES,
            model=CaptionerSpec(
                encoder=encoder,
                decoder=DecoderSpec(
                    embedding_size=32, hidden_size=128, dropout=0.0, attention=attention
                ),
            ),
            label_smoothing=0.03,
        )
    return Run(
        task=task,
        train=part(what, "train"),
        dev=part(what, "dev"),
        test=part(what, "test"),
        training=TrainingSpec(
            epochs=EPOCHS[what],
            batch_size=24,
            learning_rate=2e-3,
            warmup_steps=100,
            validation_size=200,
            seed=1,
        ),
    )


label_none, label_global, label_local, caption_none, caption_global, caption_local = (
    partial(recipe, case) for case in CASES
)


def part(what: str, name: str) -> ImageList:
    """Return one of the parts with labels or captions. The first call draws all of them."""
    folder = FOLDERS[what]
    if not (folder / "manifest.json").exists():
        counts = {**NUM_HELD_OUT, "train": NUM_TRAIN[what]}
        drawn = {name: (draw_clips(SEED, name), count) for name, count in counts.items()}
        write_pictures(folder, drawn, {"what": "clips", "seed": SEED})
    ending = "labels.tsv" if what == "label" else "tsv"
    return image_list(folder / f"{name}.{ending}", folder / "images.zip")

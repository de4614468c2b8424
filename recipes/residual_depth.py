"""Image classification with deep encoders, with and without residual connections.

    foveal fit --recipe recipes/residual_depth.py:residual_8 --out runs/residual
    python -m benchmarks.images fit residual_depth --runs runs                    all cases, three seeds
    python -m benchmarks.images score residual_depth --runs runs

    residual_n    n blocks y = x + W2 phi(W1 x) after each of two stages
    plain_n       the same blocks without the sum

An encoder with n blocks has 2 + 4 n convolutions. The images are 24 x 24 pixels with one shape of any color, size
and position on a noisy ground; the label is the shape. The recipe draws them once, as folders of images by label,
into `.cache/labeled_shapes` of the checkout: `foveal fit .cache/labeled_shapes/train` reads the same folders.

Reference: He et al. 2016 (deep residual learning for image recognition).
"""

from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from foveal.data import ImageSpec, SourceSpec, image_folders
from foveal.models import ImageClassifierSpec, ImageEncoderSpec
from foveal.tasks import ImageClassificationSpec
from foveal.training import Run, TrainingSpec
from recipes.rendered.shapes import COLORS, SHAPES, Thing, draw

FOLDER = Path(__file__).resolve().parents[1] / ".cache/labeled_shapes"
SIDE = 24  # pixels
FINER = 4  # oversampling factor, for smooth edges
NOISE = 40  # standard deviation of the noise, of 255
COUNTS = {"dev": 50, "test": 100, "train": 500}  # of each shape
SEED = 1
BLOCKS = (1, 4, 8)
CASES = tuple(f"{kind}_{blocks}" for blocks in BLOCKS for kind in ("plain", "residual"))


def recipe(case: str = "residual_8") -> Run:
    """Return a run with blocks of one kind: up to a minute."""
    kind, _, blocks = case.partition("_")
    return Run(
        task=ImageClassificationSpec(
            image=ImageSpec(height=SIDE, width=SIDE),
            model=ImageClassifierSpec(
                encoder=ImageEncoderSpec(
                    sizes=(12, 24), norm="batch", blocks=int(blocks), residual=kind == "residual"
                ),
            ),
        ),
        train=part("train"),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(
            steps=300, batch_size=32, learning_rate=2e-3, warmup_steps=50, seed=1
        ),
    )


plain_1, residual_1, plain_4, residual_4, plain_8, residual_8 = (
    partial(recipe, case) for case in CASES
)


def part(name: str) -> SourceSpec:
    """Return one of the parts. The first call draws all of them."""
    if not (FOLDER / name).exists():
        for each, count in COUNTS.items():
            _write(each, count)
    return image_folders(FOLDER / name)


def _write(name: str, count: int) -> None:
    """Draw the images of a part; every call draws the same images."""
    for shape in SHAPES:
        folder = FOLDER / name / shape
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            drawn = _image(shape, Random(f"shape {SEED} {name} {shape} {number}"))
            Image.fromarray(drawn).save(folder / f"{number}.png")


def _image(shape: str, random: Random) -> UInt8[np.ndarray, "h w 3"]:
    radius = random.uniform(5.0, 9.0)
    x, y = (random.uniform(radius, SIDE - radius) for _ in "xy")
    color = random.choice(list(COLORS))
    thing = Thing(shape, color, x * FINER, y * FINER, radius * FINER)
    drawn = draw([thing], SIDE * FINER, SIDE * FINER)
    pixels = drawn.reshape(SIDE, FINER, SIDE, FINER, 3).mean((1, 3))
    noise = np.random.default_rng(random.randrange(1 << 32)).normal(0, NOISE, pixels.shape)
    return (pixels + noise).clip(0, 255).round().astype(np.uint8)

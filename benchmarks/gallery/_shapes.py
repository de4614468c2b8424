"""Captions of drawn shapes, with attention over the grid of the image (Xu et al. 2015).

    red circle above blue square        two shapes one over the other, named from the top
    red circle beside blue square       or next to each other, named from the left

Every image is drawn at random, with random positions. A tenth of all captions is held out of training, and
the test images have these captions. In addition to the three color channels, the model gets the
coordinates of each pixel (Liu et al. 2018), because plain convolutions cannot distinguish above from below.
The decoder gets no summary of the image; it sees the image only through attention.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from examples.support.texts import Descent
from foveal.attention import AttentionTrace
from foveal.data import BEGIN, END, Encoded, Vocabulary, collate_seq2seq
from foveal.decoding import greedy
from foveal.models import Captioner, CaptionerSpec, DecoderSpec, ImageEncoderSpec, SoftmaxSpec
from foveal.specs import to_data

from ..results import Results
from ._exhibit import Budget, Exhibit, Shown, Stopwatch, rounded, share_row

COLORS = {
    "red": (204, 31, 26),
    "blue": (26, 71, 191),
    "green": (20, 130, 60),
    "yellow": (230, 180, 20),
    "purple": (125, 50, 150),
}
SHAPES = ("circle", "square", "triangle", "cross")
RELATIONS = ("above", "beside")
WORDS = Vocabulary((*COLORS, *SHAPES, *RELATIONS))
SIDE, CELL = 48, 16  # pixels of an image, and of the cell of a shape
PAPER = 238
NUM_TESTED = 500
UPDATES, BATCH, RATE = 1500, 64, 3e-3


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Two shapes and their caption."""

    image: UInt8[np.ndarray, "h w 3"]
    caption: tuple[str, ...]


def captions() -> list[tuple[str, ...]]:
    """Return all captions."""
    kinds = list(product(COLORS, SHAPES))
    return [(*one, how, *other) for how in RELATIONS for one in kinds for other in kinds]


def divided(seed: int) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Split the captions into training and test captions."""
    every = captions()
    Random(seed).shuffle(every)
    tenth = len(every) // 10
    return every[tenth:], every[:tenth]


def draw(caption: tuple[str, ...], chance: Random) -> Scene:
    """Draw a random image that matches the caption."""
    image = np.full((SIDE, SIDE, 3), PAPER, np.uint8)
    first, second = sorted(chance.sample(range(3), 2))
    line = chance.randrange(3)
    places = ((first, line), (second, line))
    if caption[2] == "beside":
        places = ((line, first), (line, second))
    for (row, column), (color, shape) in zip(places, (caption[:2], caption[3:]), strict=True):
        top, left = (CELL * place + chance.randint(5, 10) for place in (row, column))
        image[_mask(shape, top, left, chance.uniform(4.5, 6.0))] = COLORS[color]
    return Scene(image=image, caption=caption)


def _mask(shape: str, y: int, x: int, size: float) -> np.ndarray:
    """Return the pixels of a shape around a point."""
    down, right = np.mgrid[:SIDE, :SIDE]
    down, right = down - y, right - x
    if shape == "circle":
        return down**2 + right**2 <= size**2
    if shape == "square":
        return np.maximum(abs(down), abs(right)) <= 0.85 * size
    if shape == "triangle":
        return (abs(right) <= (down + size) / 2) & (down <= size)
    return (np.minimum(abs(down), abs(right)) <= 0.35 * size) & (
        np.maximum(abs(down), abs(right)) <= size
    )


def pixels(scenes: Sequence[Scene]) -> Float[Tensor, "B 5 h w"]:
    """Return three color and two coordinate channels, all from -1 to 1."""
    images = torch.tensor(np.stack([scene.image for scene in scenes])).movedim(-1, 1)
    line = torch.linspace(-1, 1, SIDE).expand(len(scenes), 1, SIDE, SIDE)
    return torch.cat([images / 127.5 - 1, line, line.mT], 1)


def spec() -> CaptionerSpec:
    """Return three stages of convolutions, and a decoder with input feeding."""
    return CaptionerSpec(
        encoder=ImageEncoderSpec(num_channels=5, sizes=(16, 32, 64)),
        decoder=DecoderSpec(
            embedding_size=32,
            hidden_size=96,
            dropout=0.0,
            attention=SoftmaxSpec(),
            input_feeding=True,
            bridge="none",
        ),
    )


def shapes(budget: Budget) -> Exhibit:
    """Train, test, and record the attention on the first test image."""
    watch, chance = Stopwatch(), Random(budget.seed)
    torch.manual_seed(budget.seed)
    known, kept = divided(budget.seed)
    model, steps = spec().build(vocabulary=len(WORDS)), budget.steps(UPDATES)
    descent = Descent(model, learning_rate=RATE, num_steps=steps)
    for _ in range(steps):
        scenes = [draw(chance.choice(known), chance) for _ in range(BATCH)]
        batch = collate_seq2seq([Encoded([], WORDS.encode(scene.caption)) for scene in scenes])
        scored = model.score(pixels(scenes), None, batch.tokens, batch.targets, batch.mask)
        descent.step(scored.loss.sum() / batch.mask.sum())
    model.eval()
    tested = [draw(chance.choice(kept), chance) for _ in range(NUM_TESTED)]
    right = [said == scene.caption for said, scene in zip(say(model, tested), tested, strict=True)]
    rows = [share_row("images with the whole caption right", right, budget.seed)]
    training = {"updates": steps, "batch": BATCH, "learning rate": RATE}
    results = Results.here("python -m benchmarks.gallery --cases shapes")
    return Exhibit(
        results=replace(
            results.with_rows([*rows, watch.row(budget.seed)]),
            spec={"model": to_data(spec()), "training": training},
        ),
        shown=_look(model, tested[0]),
    )


def say(model: Captioner, scenes: Sequence[Scene]) -> list[tuple[str, ...]]:
    """Return the captions that a model generates."""
    found = greedy(model.stepper(), model.start(pixels(scenes)), begin=BEGIN, end=END, max_length=8)
    return [tuple(WORDS.decode(best)) for (best,) in found.token_lists(END)]


def _look(model: Captioner, scene: Scene) -> Shown:
    (said,) = say(model, [scene])
    image = pixels([scene])
    batch = collate_seq2seq([Encoded([], WORDS.encode(said))])
    with torch.no_grad():
        weights = model(image, None, batch.tokens).weights
        layout = model.encode(image).layout
    assert weights is not None
    rows, columns = layout.rows or 0, layout.columns or 0
    return Shown(
        facts={"output": " ".join(said), "reference": " ".join(scene.caption)},
        trace=AttentionTrace(
            kind="spatial",
            sources=tuple(
                f"row {row + 1}, column {column + 1}"
                for row in range(rows)
                for column in range(columns)
            ),
            targets=said,
            weights=rounded(weights[0, : len(said)]),
            layout=layout,
        ),
        image=scene.image,
    )

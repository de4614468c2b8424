"""Tiny pictures with bars, each red or blue and high or low, to be named from left to right."""

import random
from pathlib import Path

import numpy as np
from PIL import Image

from foveal.data import Example, ImageSpec
from foveal.models import CaptionerSpec, DecoderSpec, ImageEncoderSpec, RecurrentSpec
from foveal.tasks import CaptioningSpec, PredictionSpec

COLORS = {"red": (210, 40, 30), "blue": (30, 60, 200)}
HEIGHTS = {"high": 14, "low": 6}
IMAGE = ImageSpec(height=32, width=96)
ENCODER = ImageEncoderSpec(
    sizes=(8, 16),
    strides=((2, 2), (4, 2)),
    rows=RecurrentSpec(hidden_size=8, dropout=0.0),
)
DECODER = DecoderSpec(embedding_size=12, hidden_size=24, dropout=0.0)
BARS = CaptioningSpec(
    image=IMAGE,
    model=CaptionerSpec(encoder=ENCODER, decoder=DECODER),
    label_smoothing=0.0,
    prediction=PredictionSpec(beam_size=2),
)


def bars(folder: Path, size: int, *, most: int = 4) -> list[Example]:
    """Draw images in a folder, and return them with the names of their bars."""
    generator, found = random.Random(0), list[Example]()
    folder.mkdir(exist_ok=True, parents=True)
    for number in range(size):
        named = [
            (generator.choice(list(COLORS)), generator.choice(list(HEIGHTS)))
            for _ in range(generator.randint(1, most))
        ]
        image = np.full((16, 12 * len(named) + generator.randint(0, 9), 3), 255, np.uint8)
        for place, (color, height) in enumerate(named):
            left = 12 * place + generator.randint(1, 3)
            image[16 - HEIGHTS[height] :, left : left + 7] = COLORS[color]
        path = folder / f"{number}.png"
        Image.fromarray(image).save(path)
        found.append(Example(str(path), " ".join(word for bar in named for word in bar)))
    return found

r"""Compose handwritten formulas: two side by side, or one above the other with a line between.

A model memorizes a corpus of a few thousand formulas: it completes a formula from its beginning without reading the
image. The beginning of a composed formula does not predict its end, so the model must read the image.

Reference: Le et al. 2019, Pattern generation strategies for improving recognition of handwritten mathematical
expressions (which composes strokes).
"""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw

from foveal.data import Example, ImageSpec, LatexSpec, Picture, read_image

from .writing import Item

SHORTEST, LONGEST = 3, 12  # tokens of a piece
FRACTIONS = 0.25  # fraction of the composed formulas
WHITE, BLACK = 255, 0


class Piece(NamedTuple):
    """A formula as a part of composed formulas."""

    picture: UInt8[np.ndarray, "h w"]
    text: str


def draw_composed(
    written: Sequence[Example], image: ImageSpec, target: LatexSpec, seed: int
) -> Iterator[Item]:
    """Yield formulas composed of two short ones, forever.

    Letters have one size if `image` normalizes it, and a composed formula then keeps that size when it is read.
    """
    pieces = [
        Piece(read_image(each.input_as(Picture).file, image)[0].numpy(), each.target)
        for each in written
        if each.target is not None and SHORTEST <= len(target.encode(each.target)) <= LONGEST
    ]
    chance = random.Random(seed)
    while True:
        first, second = chance.sample(pieces, 2)
        if chance.random() < FRACTIONS:
            page = above(first, second, chance)
            text = rf"\frac {{ {first.text} }} {{ {second.text} }}"
        else:
            page = beside(first, second, chance)
            text = f"{first.text} {second.text}"
        yield Item(np.array(_enlarged(page, image)), text)


def beside(first: Piece, second: Piece, chance: random.Random) -> Image.Image:
    """Return two formulas on one line, with their centers at slightly different heights."""
    (h, w), (h2, w2) = first.picture.shape, second.picture.shape
    gap, drop = chance.randint(3, 12), chance.randint(-3, 3)
    top = (h - h2) // 2 + drop  # top of the second, relative to the top of the first
    page = Image.new("L", (w + gap + w2, max(h, top + h2) - min(0, top)), WHITE)
    page.paste(Image.fromarray(first.picture), (0, max(0, -top)))
    page.paste(Image.fromarray(second.picture), (w + gap, max(0, top)))
    return page


def above(first: Piece, second: Piece, chance: random.Random) -> Image.Image:
    """Draw the first over the second: a fraction."""
    (h, w), (h2, w2) = first.picture.shape, second.picture.shape
    gap, more = chance.randint(2, 5), chance.randint(0, 8)
    width = max(w, w2) + 2 * more
    page = Image.new("L", (width, h + h2 + 2 * gap + 1), WHITE)
    page.paste(Image.fromarray(first.picture), ((width - w) // 2, 0))
    page.paste(Image.fromarray(second.picture), ((width - w2) // 2, h + 2 * gap + 1))
    slope = chance.randint(-1, 1)
    line = ((0, h + gap - slope), (width - 1, h + gap + slope))
    ImageDraw.Draw(page).line(line, fill=BLACK)
    return page


def _enlarged(page: Image.Image, image: ImageSpec) -> Image.Image:
    """Return the factor by which reading shrinks the page, because of its low fraction of ink."""
    ink = 1 - float(np.asarray(page).mean()) / WHITE
    scale = 1.0 if image.ink is None else max(1.0, image.ink / ink)
    size = round(scale * page.width), round(scale * page.height)
    return page.resize(size, Image.Resampling.BICUBIC)

"""Draw colored shapes on a light background without antialiasing.

Axes: h and w height and width.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, UInt8

GROUND = (245, 245, 245)
COLORS = {
    "red": (214, 39, 40),
    "green": (44, 160, 44),
    "blue": (31, 87, 200),
    "yellow": (240, 200, 20),
    "purple": (148, 60, 189),
    "orange": (255, 127, 14),
    "black": (30, 30, 30),
}
SHAPES: tuple[str, ...] = ("circle", "square", "triangle", "diamond", "cross", "star")


class Thing(NamedTuple):
    """A shape with its center and half its size, in pixels."""

    shape: str
    color: str
    x: float
    y: float
    radius: float

    def box(self) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom of the bounding box, the last two exclusive."""
        return (
            int(np.floor(self.x - self.radius)),
            int(np.floor(self.y - self.radius)),
            int(np.ceil(self.x + self.radius)) + 1,
            int(np.ceil(self.y + self.radius)) + 1,
        )


def draw(things: list[Thing], height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    """Draw the shapes on the background, later ones over earlier ones."""
    picture = np.empty((height, width, 3), dtype=np.uint8)
    picture[:] = GROUND
    for thing in things:
        left, top, right, bottom = thing.box()
        left, top = max(0, left), max(0, top)
        there = picture[top:bottom, left:right]
        down, across = np.mgrid[: there.shape[0], : there.shape[1]].astype(np.float64)
        x, y = (across + left - thing.x) / thing.radius, (down + top - thing.y) / thing.radius
        there[_inside(thing.shape, x, y)] = COLORS[thing.color]
    return picture


def _inside(
    shape: str, x: Float[np.ndarray, "h w"], y: Float[np.ndarray, "h w"]
) -> Bool[np.ndarray, "h w"]:
    """Return the pixels inside a shape of radius 1 around the center."""
    match shape:
        case "circle":
            return x**2 + y**2 <= 1
        case "square":
            return np.maximum(abs(x), abs(y)) <= 0.85
        case "triangle":
            return (y <= 0.8) & (abs(x) <= (y + 1) / 1.8)
        case "diamond":
            return abs(x) / 0.75 + abs(y) <= 1
        case "cross":
            return (np.maximum(abs(x), abs(y)) <= 1) & (np.minimum(abs(x), abs(y)) <= 0.3)
        case "star":
            angle = np.mod(np.arctan2(x, -y), 2 * np.pi / 5) - np.pi / 5
            # The sides of a point run from radius 1 at its tip to 0.45 halfway to the next point.
            tip, between = np.pi / 5, 0.45
            along = tip - abs(angle)
            edge = between * np.sin(tip) / (np.sin(tip - along) * between + np.sin(along) * 1.0)
            return np.hypot(x, y) <= edge
    raise AssertionError(shape)

"""Clips of moving shapes and their captions.

    caption    clause | clause while clause
    clause     a red circle moves left

Two shapes stay in separate halves of the frame; the caption names the left or the upper one first. The label of a clip
is the motion of the first, or only, shape. Position, speed, phase and direction of rotation are random, so a single
frame does not reveal the verb.

Axes: F frames, h and w height and width.
"""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import numpy as np

from .shapes import COLORS, SHAPES, Thing, draw
from .writing import Item

SIDE = 56  # pixels
NUM_FRAMES = 12
RADII = (4.5, 6.0)
LARGEST = 1.3  # factor of the radius for a shape that grows


class Zone(NamedTuple):
    """The area of a shape's center: a point, and the maximum distance to either side and up or down."""

    x: float
    y: float
    across: float
    down: float


class Pose(NamedTuple):
    """The position of a shape in its zone, from -1 to 1, and its size relative to its original size."""

    x: float
    y: float
    size: float = 1.0


Path = Callable[[float], Pose]  # a function of time, from 0 to 1


def draw_clips(seed: int, part: str) -> Iterator[Item]:
    """Yield clips of a part forever."""
    number = 0
    while True:
        yield _clip(Random(f"clip {seed} {part} {number}"))
        number += 1


def _clip(random: Random) -> Item:
    count = random.choice((1, 2))
    colors, shapes = random.sample(list(COLORS), count), random.sample(SHAPES, count)
    verbs = random.sample(list(VERBS), count)
    frames: list[list[Thing]] = [[] for _ in range(NUM_FRAMES)]
    clauses: list[str] = []
    zones = _zones(count, side_by_side=random.random() < 0.5)
    for zone, color, shape, verb in zip(zones, colors, shapes, verbs, strict=True):
        radius, path = random.uniform(*RADII), VERBS[verb](random)
        for frame, things in enumerate(frames):
            pose = path(frame / (NUM_FRAMES - 1))
            x, y = zone.x + zone.across * pose.x, zone.y + zone.down * pose.y
            if pose.size > 0:
                things.append(Thing(shape, color, x, y, radius * pose.size))
        article = "an" if color[0] in "aeiou" else "a"
        clauses.append(f"{article} {color} {shape} {verb}")
    picture = np.stack([draw(things, SIDE, SIDE) for things in frames])
    text = " while ".join(clauses)
    return Item(picture=picture, text=text, size=len(text.split()), label=verbs[0])


def _zones(count: int, *, side_by_side: bool) -> list[Zone]:
    """Return a zone for each shape, in the order of the caption."""
    edge = RADII[1] + 1
    whole, half = SIDE / 2 - edge, SIDE / 4 - edge
    if count == 1:
        return [Zone(SIDE / 2, SIDE / 2, whole, whole)]
    near, far = SIDE / 4, SIDE * 3 / 4
    if side_by_side:
        return [Zone(x, SIDE / 2, half, whole) for x in (near, far)]
    return [Zone(SIDE / 2, y, whole, half) for y in (near, far)]


def _moves(step_x: int, step_y: int) -> Callable[[Random], Path]:
    def path(random: Random) -> Path:
        first, last = random.uniform(-1, -0.6), random.uniform(0.6, 1)
        beside = random.uniform(-0.6, 0.6)

        def at(time: float) -> Pose:
            along = (first + (last - first) * time) * (step_x + step_y)
            return Pose(along, beside) if step_x else Pose(beside, along)

        return at

    return path


def _bounces(random: Random) -> Path:
    """Return a path that falls and bounces, lower each time."""
    x, drift = random.uniform(-0.5, 0.5), random.uniform(-0.3, 0.3)
    times, high = random.choice((2.0, 2.5, 3.0)), random.uniform(1.6, 2.0)

    def at(time: float) -> Pose:
        up = abs(math.cos(math.pi * times * time)) * high * (1 - 0.4 * time)
        return Pose(x + drift * time, 1 - up)

    return at


def _sized(first: float, last: float) -> Callable[[Random], Path]:
    def path(random: Random) -> Path:
        x, y = (random.uniform(-0.6, 0.6) for _ in range(2))
        return lambda time: Pose(x, y, first + (last - first) * time)

    return path


def _blinks(random: Random) -> Path:
    x, y = (random.uniform(-0.6, 0.6) for _ in range(2))
    times, phase = random.choice((2, 3)), random.random()
    return lambda time: Pose(x, y, float((time * times * 0.999 + phase) % 1 < 0.5))


def _circles(random: Random) -> Path:
    way = random.choice((-1, 1)) * 2 * math.pi * random.uniform(0.9, 1.3)
    wide, begin = random.uniform(0.75, 1), random.uniform(0, 2 * math.pi)

    def at(time: float) -> Pose:
        angle = begin + way * time
        return Pose(wide * math.cos(angle), wide * math.sin(angle))

    return at


def _swings(random: Random) -> Path:
    """Return a path from side to side."""
    far, y = random.uniform(0.75, 1), random.uniform(-0.6, 0.6)
    times, begin = random.uniform(1.2, 1.8), random.uniform(0, 2 * math.pi)
    return lambda time: Pose(far * math.sin(begin + 2 * math.pi * times * time), y)


VERBS: dict[str, Callable[[Random], Path]] = {
    "moves left": _moves(-1, 0),
    "moves right": _moves(1, 0),
    "moves up": _moves(0, -1),
    "moves down": _moves(0, 1),
    "bounces": _bounces,
    "grows": _sized(0.45, LARGEST),
    "shrinks": _sized(LARGEST, 0.45),
    "blinks": _blinks,
    "circles": _circles,
    "swings": _swings,
}

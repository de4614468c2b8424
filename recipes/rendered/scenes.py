"""Scenes of shapes and their captions.

    caption    group | group relation group | group relation group and relation group
    group      a small red circle | two large blue squares
    relation   above | below | left of | right of

Every scene has one caption. The caption names the smallest group first; with equal numbers, the group of larger
shapes. The vertical relation comes before the horizontal one. The shapes of a group are close together. Each word that
names a group has the bounding boxes of its shapes.

Two kinds of combinations are in no training scene:

    held_out           size, color and shape: training has large black circles but no small ones
    held_out_pairs     color and shape: training has no red circle of any size

Every scene of these parts has a held-out combination.
"""

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from .shapes import COLORS, SHAPES, Thing, draw
from .writing import Item

SIDE = 80  # pixels
GAP = 3  # pixels between shapes, and between areas of the scene
WIDEST_GAP = 6  # pixels to the next shape of a group
RADII = {"small": (4.75, 5.25), "large": (8.0, 9.0)}
FINER = 3  # oversampling factor, for smooth edges
NUMBERS = {1: "a", 2: "two", 3: "three"}
# Training has each size, each color and each shape, but not these combinations.
HELD_OUT = frozenset(
    {
        ("small", "black", "circle"),
        ("large", "black", "star"),
        ("small", "yellow", "square"),
        ("large", "yellow", "diamond"),
        ("small", "purple", "triangle"),
        ("large", "purple", "cross"),
        ("small", "orange", "star"),
        ("large", "orange", "circle"),
    }
)
HELD_OUT_PAIRS = frozenset({("red", "circle"), ("green", "square"), ("blue", "triangle")})
_LOOKS = list(product(RADII, COLORS, SHAPES))
# Every scene of a part has one of the first groups; its other groups come from the second.
_UNSEEN = {
    "held_out": sorted(HELD_OUT),
    "held_out_pairs": [look for look in _LOOKS if look[1:] in HELD_OUT_PAIRS],
}
_SEEN = [look for look in _LOOKS if not any(look in unseen for unseen in _UNSEEN.values())]
_TRIES = 400

Box = tuple[int, int, int, int]


class Group(NamedTuple):
    """A group of shapes with one size, color and shape."""

    number: int
    size: str
    color: str
    shape: str

    def words(self) -> list[str]:
        """Return the words of the group in a caption."""
        plural = "es" if self.shape == "cross" else "s"
        ending = plural if self.number > 1 else ""
        return [NUMBERS[self.number], self.size, self.color, f"{self.shape}{ending}"]

    def rank(self) -> tuple[int, bool]:
        """Return the sort key that decides which group is named first."""
        return self.number, self.size == "small"


def draw_scenes(seed: int, part: str) -> Iterator[Item]:
    """Yield scenes of a part forever."""
    number = 0
    while True:
        random = Random(f"scene {seed} {part} {number}")
        number += 1
        scene = _scene(random, part)
        if scene is not None:
            yield scene


def _scene(random: Random, part: str) -> Item | None:
    groups = _groups(random, random.choices((1, 2, 3), (1, 3, 2))[0], part)
    relations, areas = _areas(random, len(groups))
    words: list[str] = []
    boxes: list[list[Box]] = []
    things: list[Thing] = []
    found = [_placed(random, group, area) for group, area in zip(groups, areas, strict=True)]
    if len(found) == 2 and found[0] and found[1] and _is_askew(found[0], found[1], relations[0]):
        return None
    for number, (group, placed) in enumerate(zip(groups, found, strict=True)):
        if placed is None:
            return None
        if number:
            linking = ["and"] * (number > 1) + relations[number - 1].split()
            words += linking
            boxes += [[] for _ in linking]
        words += group.words()
        boxes += [[thing.box() for thing in placed]] * len(group.words())
        things += placed
    picture = _smooth(things)
    return Item(picture=picture, text=" ".join(words), size=len(words), boxes=boxes)


def _groups(random: Random, count: int, part: str) -> list[Group]:
    """Draw different groups, in the order of the caption."""
    while True:
        looks = random.sample(_SEEN, count)
        if part in _UNSEEN:
            looks[random.randrange(count)] = random.choice(_UNSEEN[part])
        groups = [Group(random.choice(list(NUMBERS)), *look) for look in looks]
        is_ranked = len({group.rank() for group in groups}) == count
        if is_ranked and len({look[1:] for look in looks}) == count:
            break
    first = min(groups, key=Group.rank)
    rest = [group for group in groups if group is not first]
    return [first, *rest]


def _areas(random: Random, count: int) -> tuple[list[str], list[Box]]:
    """Return the relations of the first group to the others, and the area of each group."""
    half, whole = SIDE // 2, (0, 0, SIDE, SIDE)
    if count == 1:
        return [], [whole]
    rows, columns = ((0, half), (half, SIDE)), ((0, half), (half, SIDE))
    upper, left = random.randrange(2), random.randrange(2)
    above, beside = ("above", "below")[upper], ("left of", "right of")[left]
    if count == 2:
        if random.random() < 0.5:
            return [above], [(0, rows[n][0], SIDE, rows[n][1]) for n in (upper, 1 - upper)]
        return [beside], [(columns[n][0], 0, columns[n][1], SIDE) for n in (left, 1 - left)]
    row = rows[upper]
    first, third = ((columns[n][0], row[0], columns[n][1], row[1]) for n in (left, 1 - left))
    second = (0, rows[1 - upper][0], SIDE, rows[1 - upper][1])
    return [above, beside], [first, second, third]


def _smooth(things: list[Thing]) -> UInt8[np.ndarray, "h w 3"]:
    """Draw the shapes with smooth edges."""
    middle = (FINER - 1) / 2
    finer = [
        thing._replace(
            x=thing.x * FINER + middle, y=thing.y * FINER + middle, radius=thing.radius * FINER
        )
        for thing in things
    ]
    drawn = draw(finer, SIDE * FINER, SIDE * FINER)
    parts = drawn.reshape(SIDE, FINER, SIDE, FINER, 3)
    return parts.mean((1, 3)).round().astype(np.uint8)


def _is_askew(first: list[Thing], second: list[Thing], relation: str) -> bool:
    """Return True if one group is both above and next to another, because then two captions would be
    true.
    """
    side = 0 if relation in ("above", "below") else 1
    (low, high), (other_low, other_high) = (
        (min(thing.box()[side] for thing in group), max(thing.box()[side + 2] for thing in group))
        for group in (first, second)
    )
    return high <= other_low or other_high <= low


def _placed(random: Random, group: Group, area: Box) -> list[Thing] | None:
    """Place the shapes of a group close together in an area without contact; None if they do not fit."""
    left, top, right, bottom = area
    things: list[Thing] = []
    for _ in range(_TRIES):
        if len(things) == group.number:
            break
        radius = random.uniform(*RADII[group.size])
        room = radius + GAP
        x, y = random.uniform(left + room, right - room), random.uniform(top + room, bottom - room)
        gaps = [max(abs(x - t.x), abs(y - t.y)) - radius - t.radius for t in things]
        if not gaps or GAP < min(gaps) < WIDEST_GAP:
            things.append(Thing(group.shape, group.color, x, y, radius))
    return things if len(things) == group.number else None

"""Symmetrization: merge the alignment links of both directions into one set.

    intersection      links in both directions
    union             links in either direction
    grow-diag-final   start from the intersection; repeatedly add links of the union that neighbor an accepted
                      link (also diagonally) and cover an unaligned word; finally add links of either
                      direction for words that are still unaligned

    intersection <= grow-diag-final <= union

References: Och and Ney 2003; Koehn, Och and Marcu 2003.
"""

from collections.abc import Collection, Set
from typing import Literal, TypeAlias, assert_never

from ...data.formats._links import Link

Symmetrization: TypeAlias = Literal["intersection", "union", "grow-diag-final"]

_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]


def symmetrize(
    forward: Collection[Link],
    backward: Collection[Link],
    method: Symmetrization = "grow-diag-final",
) -> frozenset[Link]:
    """Merge two alignments into one.

    Args:
        forward: Links of the forward direction, as pairs (source word, target word).
        backward: Links of the backward direction, also as pairs (source word, target word).
        method: "intersection", "union", or "grow-diag-final", which starts from the intersection and adds links of
            the union.

    Returns:
        The links of the merged alignment.

    Examples:
        >>> sorted(symmetrize({(0, 0), (1, 1)}, {(0, 0), (1, 2)}, "intersection"))
        [(0, 0)]
        >>> sorted(symmetrize({(0, 0), (1, 1)}, {(0, 0), (1, 2)}))
        [(0, 0), (1, 1), (1, 2)]
    """
    there, back = frozenset(forward), frozenset(backward)
    match method:
        case "intersection":
            return there & back
        case "union":
            return there | back
        case "grow-diag-final":
            grown = _grown(there & back, there | back)
            return _filled(_filled(grown, there), back)
        case _:
            assert_never(method)


def _grown(start: Set[Link], union: Set[Link]) -> set[Link]:
    """Grow the start set with links of the union, one by one: each neighbors an accepted link and covers an
    unaligned word.
    """
    links = set(start)
    waiting = sorted(links)
    while waiting:
        i, j = waiting.pop(0)
        for di, dj in _NEIGHBOURS:
            link = i + di, j + dj
            if link in union and link not in links and _brings_in(link, links):
                links.add(link)
                waiting.append(link)
    return links


def _filled(links: Set[Link], others: Set[Link]) -> frozenset[Link]:
    """Add other links, in order, while they cover an unaligned word."""
    filled = set(links)
    for link in sorted(others):
        if link not in filled and _brings_in(link, filled):
            filled.add(link)
    return frozenset(filled)


def _brings_in(link: Link, links: Set[Link]) -> bool:
    """Return whether one of the two words has no link yet."""
    return not (any(i == link[0] for i, _ in links) and any(j == link[1] for _, j in links))

"""Links from both directions made one set of links.

    intersection      what both say
    union             what either says
    grow-diag-final   the intersection; then, again and again, links of the union beside a link there
                      is (diagonally too) that bring in a word without a link; last, links of either
                      direction for words that are still without

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
    """One alignment of two. Both have links as source word and target word of the forward direction.

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
    """The links of the union that can be reached from the start, one by one, each next to one that
    is there and bringing in a word.
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
    """With other links, in order, as long as they bring in a word."""
    filled = set(links)
    for link in sorted(others):
        if link not in filled and _brings_in(link, filled):
            filled.add(link)
    return frozenset(filled)


def _brings_in(link: Link, links: Set[Link]) -> bool:
    """Whether one of the words has no link yet."""
    return not (any(i == link[0] for i, _ in links) and any(j == link[1] for _, j in links))

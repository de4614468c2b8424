"""The laws of alignments that combine two directions."""

from collections.abc import Set

from hypothesis import given, strategies as st

from foveal.data.formats._links import Link
from foveal.inspection import symmetrize

LINKS = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14)


@given(forward=LINKS, backward=LINKS)
def test_each_method_finds_more_than_the_one_before(
    forward: frozenset[Link], backward: frozenset[Link]
) -> None:
    both = symmetrize(forward, backward, "intersection")
    grown = symmetrize(forward, backward, "grow-diag-final")
    either = symmetrize(forward, backward, "union")
    assert both <= grown <= either
    assert both == forward & backward
    assert either == forward | backward


@given(forward=LINKS, backward=LINKS)
def test_every_word_that_either_direction_links_is_linked(
    forward: frozenset[Link], backward: frozenset[Link]
) -> None:
    grown = symmetrize(forward, backward)
    for side in (0, 1):
        assert {link[side] for link in grown} == {link[side] for link in forward | backward}


@given(links=LINKS)
def test_two_that_agree_are_left_alone(links: frozenset[Link]) -> None:
    for method in ("intersection", "union", "grow-diag-final"):
        assert symmetrize(links, links, method) == links


@given(forward=LINKS, backward=LINKS)
def test_texts_may_change_places(forward: frozenset[Link], backward: frozenset[Link]) -> None:
    """This holds for the methods whose result does not depend on the order of links."""

    def turned(links: Set[Link]) -> frozenset[Link]:
        return frozenset((j, i) for i, j in links)

    for method in ("intersection", "union"):
        there = symmetrize(forward, backward, method)
        assert symmetrize(turned(backward), turned(forward), method) == turned(there)


def test_growing_by_hand() -> None:
    forward = {(0, 0), (1, 1), (1, 2), (3, 4)}
    backward = {(0, 0), (2, 2), (1, 1), (0, 4)}
    # 1-2 adds target 2, next to 1-1; then 2-2 adds source 2; 3-4 has no neighbor and is added last
    # for its two words; then 0-4 adds nothing.
    grown = symmetrize(forward, backward)
    assert grown == {(0, 0), (1, 1), (1, 2), (2, 2), (3, 4)}

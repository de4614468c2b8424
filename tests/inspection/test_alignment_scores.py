"""Alignment scores, computed by hand and checked against their laws."""

import pytest
from hypothesis import given, strategies as st

from foveal.data.formats._links import Gold, Link
from foveal.errors import ShapeError
from foveal.metrics import alignment_scores

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=10)


@st.composite
def gold(draw: st.DrawFn) -> Gold:
    sure = draw(LINKS)
    return Gold(sure, sure | draw(LINKS))


def test_by_hand_over_two_pairs() -> None:
    """A has 5 links, S 4; 3 are sure and 4 possible: AER = 1 - 7/9."""
    first = Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))
    second = Gold(frozenset({(0, 1), (1, 0)}), frozenset({(0, 1), (1, 0)}))
    scores = alignment_scores([{(0, 0), (1, 1), (2, 1)}, {(0, 1), (0, 0)}], [first, second])
    assert scores.precision.value == pytest.approx(100 * 4 / 5)
    assert scores.recall.value == pytest.approx(100 * 3 / 4)
    assert scores.f1.value == pytest.approx(100 * 2 * 0.8 * 0.75 / 1.55)
    assert scores.aer.value == pytest.approx(100 * (1 - 7 / 9))
    assert (scores.num_links, scores.num_sure, scores.num_possible) == (5, 4, 5)
    assert scores.aer.low <= scores.aer.value <= scores.aer.high


@given(found=LINKS, known=LINKS)
def test_without_possible_links_aer_is_what_f1_leaves(
    found: frozenset[Link], known: frozenset[Link]
) -> None:
    """AER = 1 - F1 if every gold link is sure (Och and Ney 2003)."""
    scores = alignment_scores([found], [Gold(known, known)])
    if found or known:
        assert scores.aer.value == pytest.approx(100 - scores.f1.value)
    else:
        assert scores.aer.value == 0


@given(known=gold())
def test_the_gold_links_themselves_have_no_error(known: Gold) -> None:
    for links in (known.sure, known.possible):
        assert alignment_scores([links], [known]).aer.value == 0


@given(known=gold(), found=LINKS)
def test_scores_are_shares(known: Gold, found: frozenset[Link]) -> None:
    scores = alignment_scores([found, frozenset()], [known, known])
    for metric in scores[:4]:
        assert 0 <= metric.value <= 100


def test_alignments_and_gold_must_go_together() -> None:
    with pytest.raises(ShapeError, match="2 alignments and gold links for 1"):
        alignment_scores([set(), set()], [Gold(frozenset(), frozenset())])
    with pytest.raises(ShapeError, match="at least 1"):
        alignment_scores([], [])

"""The tree of a beam search."""

import math

import pytest
from hypothesis import given, settings, strategies as st

from foveal.errors import ShapeError, ValueRangeError
from foveal.views import beam_tree, hypotheses_table
from foveal.views._beam import Hypothesis
from tests.inspection.drawings import SVG, elements, parsed, titles


def _hypothesis(tokens: str, score: float, *, finished: bool = True) -> Hypothesis:
    log_probs = tuple(-0.1 * (index + 1) for index in range(len(tokens)))
    return Hypothesis(tokens=tuple(tokens), log_probs=log_probs, score=score, finished=finished)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abc", max_size=5), max_size=7))
def test_hypotheses_that_begin_alike_share_a_stem(texts: list[str]) -> None:
    hypotheses = [_hypothesis(text, -float(rank)) for rank, text in enumerate(texts)]
    drawing = beam_tree(hypotheses)
    prefixes = {text[: end + 1] for text in texts for end in range(len(text))}
    assert len(elements(drawing, "g", "token")) == len(prefixes)
    ends = elements(drawing, "g", "leaf")
    assert len(ends) == len(texts)
    heights = [float(end.findall(f"{SVG}circle")[0].get("cy", 0)) for end in ends]
    assert len(set(heights)) == len(heights)  # each has a separate line


def test_no_two_tokens_overlap_and_the_best_is_straight() -> None:
    drawing = beam_tree(
        [_hypothesis(text, -float(len(text))) for text in ("abc", "abe", "ab", "xbc", "a")]
    )
    boxes = [group.findall(f"{SVG}rect")[0] for group in elements(drawing, "g", "token")]
    spots = [tuple(float(box.get(name, 0)) for name in ("x", "y", "width")) for box in boxes]
    for index, (x, y, room) in enumerate(spots):
        for other_x, other_y, other_room in spots[index + 1 :]:
            apart = x + room <= other_x or other_x + other_room <= x
            assert abs(y - other_y) >= 24 or apart
    best = elements(drawing, "path", "best")
    assert all("H" in (path.get("d") or "") for path in best)


def test_titles_give_probabilities_scores_and_ranks() -> None:
    drawing = beam_tree([_hypothesis("ab", -0.3), _hypothesis("ac", -2.5, finished=False)])
    said = titles(drawing)
    assert f"a: probability {math.exp(-0.1):.3f} here, log-probability -0.10 so far" in said
    assert f"c: probability {math.exp(-0.2):.3f} here, log-probability -0.30 so far" in said
    assert "a b: finished, score -0.3, log-probability -0.3" in said
    assert "a c: dropped, score -2.5, log-probability -0.3" in said
    assert "1.  -0.30" in drawing


def test_finished_hypotheses_come_first_and_the_best_of_them_on_top() -> None:
    dropped = _hypothesis("c", -0.1, finished=False)
    drawing = beam_tree([dropped, _hypothesis("a", -2.0), _hypothesis("b", -1.0)])
    leaves = [group.findtext(f"{SVG}title") or "" for group in elements(drawing, "g", "leaf")]
    assert [leaf[1] for leaf in leaves] == ["b", "a", "c"]
    heights = [float(group[2].get("y", 0)) for group in elements(drawing, "g", "leaf")]
    assert heights == sorted(heights)


def test_a_thousand_tokens_and_a_thousand_hypotheses() -> None:
    long = _hypothesis("a" * 1000, -1.0)
    assert len(elements(beam_tree([long]), "g", "token")) == 1000
    many = [_hypothesis(f"{index:04d}", -float(index)) for index in range(1000)]
    drawing = beam_tree(many)
    assert "200 more hypotheses are not drawn" in drawing
    assert len(drawing.encode()) < 900_000


def test_no_hypothesis() -> None:
    drawing = beam_tree([])
    assert "No hypothesis" in drawing
    assert parsed(drawing).get("role") == "img"


def test_the_table_has_the_same_order() -> None:
    table = hypotheses_table([_hypothesis("b", -2.0), _hypothesis("a", -1.0)])
    assert [row[0] for row in table.rows] == ["1", "2"]
    assert [row[2] for row in table.rows] == ["-1", "-2"]
    assert "0.905" in table.rows[0][3]


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ShapeError, match="each of 2 tokens, got 1"):
        Hypothesis(tokens=("a", "b"), log_probs=(-1.0,), score=-1.0)
    with pytest.raises(ValueRangeError, match="score -inf"):
        Hypothesis(tokens=(), log_probs=(), score=-math.inf)
    with pytest.raises(ValueRangeError, match="at most 0"):
        Hypothesis(tokens=("a",), log_probs=(0.5,), score=0.0)

"""Invisible characters in tokens are shown by visible signs."""

import pytest
from hypothesis import given, strategies as st

from foveal.views._text import bounded, legal, number, right_to_left, short, shown, width
from tests.inspection.drawings import ARABIC, ENGLISH, HOSTILE, JAPANESE

anything = st.text(st.characters(codec=None), max_size=60)


@given(anything)
def test_every_token_can_be_seen_and_written(token: str) -> None:
    visible = shown(token)
    assert visible.strip()
    assert legal(visible) == visible
    assert "\n" not in visible
    visible.encode()


def test_signs_for_what_has_none() -> None:
    assert shown("\u202eabc") == "⟨U+202E⟩abc"
    assert shown("\u200b") == "⟨U+200B⟩"
    assert shown("a\x07") == "a⟨U+0007⟩"
    assert shown(" a  ") == "␣a␣␣"
    persian = f"{ARABIC[0]}\u200c{ARABIC[1]}"
    assert shown(persian) == persian  # joiners inside a word stay


@given(anything, st.floats(2, 30))
def test_a_label_fits(token: str, ems: float) -> None:
    label = short(token, ems)
    assert width(label) <= ems + 1e-9
    if width(shown(token)) <= ems and max(map(len, [token])) < 8:
        assert "…" not in label or "…" in token


def test_marks_do_not_pile_up_and_cost_no_width() -> None:
    assert len(bounded("e" + 40 * "\u0301")) == 8
    assert width("e\u0301") == width("e")
    assert width("猫") > width("c")


def test_direction_is_that_of_most_tokens() -> None:
    assert right_to_left(ARABIC)
    assert right_to_left([*ARABIC, "GPU", "."])
    assert not right_to_left(ENGLISH)
    assert not right_to_left(JAPANESE)
    assert not right_to_left(["1", ".", ""])
    assert short("القطة.", 10.0).startswith("\u2068")


@given(st.floats(0, 1))
def test_a_number_tells_its_weight(weight: float) -> None:
    said = number(weight)
    if said.startswith("<"):
        assert 0 < weight < 1e-4
    else:
        assert float(said) == pytest.approx(weight, abs=5.1e-4, rel=0)
        assert float(said) == pytest.approx(weight, rel=0.06)


def test_hostile_tokens_stay_apart() -> None:
    assert len({bounded(token) for token in HOSTILE}) == len(HOSTILE)

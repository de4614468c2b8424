"""Normalized LaTeX: formulas that look the same have the same tokens, and nothing visible is lost."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, strategies as st

from foveal.data import LatexSpec
from recipes.rendered import render
from recipes.rendered.grammar import formula

CANONICAL = LatexSpec(braces="canonical")
HANDWRITTEN = LatexSpec(braces="canonical", signs="handwritten")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"x^\prime_{2}", r"x _ { 2 } ^ { \prime }"),
        (r"{ {a} {t^{2}} }", "a t ^ { 2 }"),
        (r"\frac 2 3 x^{\frac 3 2}", r"\frac { 2 } { 3 } x ^ { \frac { 3 } { 2 } }"),
        (r"\sqrt[5]5 \sqrt{x}^2", r"\sqrt [ 5 ] { 5 } \sqrt { x } ^ { 2 }"),
        (r"{x^2}^3", "{ x ^ { 2 } } ^ { 3 }"),
        (r"{x y}^3", "x y ^ { 3 }"),
        (r"{}_1 F", "_ { 1 } F"),
        (r"\begin{array}{cc}{1}&{}\end{array}", r"\begin{array} { c c } 1 & \end{array}"),
        (r"\mathrm{a}\left(b", r"\mathrm { a } \left ( b"),
    ],
)
def test_braces_are_around_arguments_alone(text: str, expected: str) -> None:
    assert CANONICAL.decode(CANONICAL.encode(text)) == expected


@pytest.mark.parametrize(
    "text", ["x ^", "{ x", "x }", "x ^ 1 ^ 2", r"\frac 1", "{" * 200 + "}" * 200]
)
def test_what_is_no_formula_stays_as_it_is(text: str) -> None:
    assert CANONICAL.encode(text) == LatexSpec().encode(text)


def test_what_a_pen_cannot_show_is_dropped() -> None:
    text = r"\mbox{ F }\left\{ \lim\limits_{x \to 0}\; x \lt 1 \right."
    assert HANDWRITTEN.decode(HANDWRITTEN.encode(text)) == (
        r"F \{ \lim _ { x \rightarrow 0 } x < 1"
    )


def test_drawn_formulas_are_canonical_already() -> None:
    random = Random(1)
    for size in range(3, 40):
        text = " ".join(formula(random, size))
        assert CANONICAL.encode(text) == LatexSpec().encode(text)


@pytest.mark.parametrize("text", [r"x^2_i", r"{\sqrt{a}}^2", r"{x} + {a}_{b}", r"\bar x^{2}"])
def test_it_looks_the_same(text: str) -> None:
    before, after = render(LatexSpec().encode(text)), render(CANONICAL.encode(text))
    assert before is not None
    assert after is not None
    assert (before == after).all()


@given(
    st.lists(
        st.sampled_from(["x", "1", "{", "}", "^", "_", r"\frac", r"\sqrt", "[", "]", r"\left", "."])
    )
)
def test_it_is_done_once_and_loses_nothing(symbols: list[str]) -> None:
    written = CANONICAL.encode(" ".join(symbols))
    assert CANONICAL.encode(" ".join(written)) == written
    seen = [Counter(each for each in side if each not in "{}") for side in (symbols, written)]
    assert seen[0] == seen[1]

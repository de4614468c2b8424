"""The random formulas of the examples mean the same in both notations and have the requested depth."""

from math import prod
from random import Random

import pytest

from examples.support.formulas import SYMBOLS, draw_examples, draw_formula
from foveal.data.vocabularies._vocabulary import UNKNOWN


def depth_of(formula: str) -> int:
    depth = deepest = 0
    for symbol in formula.split():
        depth += (symbol == "(") - (symbol == ")")
        deepest = max(deepest, depth)
    assert depth == 0
    return deepest


def value_of_prefix(symbols: list[str], widths: set[int]) -> int:
    """Evaluate and remove the first formula; `widths` collects the operators' argument counts."""
    symbol = symbols.pop(0)
    if symbol != "(":
        return int(symbol)
    operator, values = symbols.pop(0), list[int]()
    while symbols[0] != ")":
        values.append(value_of_prefix(symbols, widths))
    symbols.pop(0)
    widths.add(len(values))
    return {"+": sum, "*": prod}[operator](values)


@pytest.mark.parametrize("depth", range(7))
def test_both_notations_have_the_depth_and_the_value_of_one_formula(depth: int) -> None:
    chance, widths = Random(depth), set[int]()
    for _ in range(50):
        formula = draw_formula(depth, chance)
        assert depth_of(formula.prefix) == depth_of(formula.infix) == depth
        symbols = formula.prefix.split()
        assert value_of_prefix(symbols, widths) == eval(formula.infix)
        assert not symbols
        numbers = [int(symbol) for symbol in formula.infix.split() if symbol.isdigit()]
        assert set(numbers) <= set(range(21))
    assert widths == ({2, 3, 4} if depth else set())


def test_examples_are_all_different_and_unlike_those_that_are_known() -> None:
    known = draw_examples([1], 50, Random(0))
    same_chance = draw_examples([1, 3], 50, Random(0), unlike=known)
    sources = [example.text for example in known + same_chance]
    assert len(set(sources)) == len(sources) == 150
    assert [depth_of(source) for source in sources] == [1] * 100 + [3] * 50


def test_infix_has_no_parentheses_around_the_whole_and_no_unknown_symbol() -> None:
    for example in draw_examples([2], 20, Random(1)):
        assert example.target is not None
        assert eval(example.target) == value_of_prefix(example.text.split(), set())
        assert example.target.count("(") == example.text.count("(") - 1
        for text in (example.text, example.target):
            numbers = SYMBOLS.encode(text.split())
            assert UNKNOWN not in numbers
            assert SYMBOLS.decode(numbers) == text.split()

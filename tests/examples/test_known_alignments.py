"""Alignments known by construction: every target token has exactly one source token, the right one."""

from random import Random

import pytest

from examples.support import DATA
from examples.support.formulas import draw_examples
from examples.support.known_alignments import (
    NAMES,
    align_command,
    align_formula,
    draw_digits,
    read_commands,
)


def test_a_symbol_of_a_formula_comes_from_the_same_symbol() -> None:
    for example in draw_examples([1, 3], 20, Random(0)):
        known = align_formula(example.text)
        assert known.example.target == example.target
        source, target = example.text.split(), (example.target or "").split()
        assert sorted(j for _, j in known.gold.sure) == list(range(len(target)))
        for i, j in known.gold.sure:
            assert source[i] == target[j]
        numbers = [i for i, j in sorted(known.gold.sure, key=lambda link: link[1])]
        assert len(set(numbers)) >= len(source) - 2  # the outermost parentheses may be missing


def test_commands_by_hand() -> None:
    known = align_command("walk opposite left and turn right thrice")
    assert known.example.target == "I_TURN_LEFT I_TURN_LEFT I_WALK" + " I_TURN_RIGHT" * 3
    assert known.gold.sure == {(2, 0), (2, 1), (0, 2), (5, 3), (5, 4), (5, 5)}
    possible = known.gold.possible - known.gold.sure
    assert possible == {
        *((1, 0), (1, 1), (1, 2)),
        *((place, action) for place in (4, 6) for action in (3, 4, 5)),
    }


def test_letters_come_from_digits_in_order() -> None:
    for example, gold in draw_digits(20, Random(1)):
        letters = (example.target or "").split()
        spelt: dict[int, str] = {}
        places = [i for i, _ in sorted(gold.sure, key=lambda link: link[1])]
        assert places == sorted(places)
        for i, j in sorted(gold.sure, key=lambda link: link[1]):
            spelt[i] = spelt.get(i, "") + letters[j]
        assert [spelt[n] for n in range(len(spelt))] == [
            NAMES[int(digit)] for digit in example.text.split()
        ]


def test_the_grammar_gives_the_actions_of_the_data() -> None:
    path = DATA / "scan/tasks_test_simple.txt.gz"
    if not path.exists():
        pytest.skip("the data set is not here")
    for example, gold in read_commands(path):  # asserts that the actions equal the file's actions
        assert gold.sure <= gold.possible
        assert len(gold.sure) == len((example.target or "").split())

"""Small programs: their interpreter agrees with Python and refuses other texts."""

import contextlib
import io
import re
from random import Random

import pytest

from examples.support.programs import draw_program, run_program, scrambled, unscrambled


@pytest.mark.parametrize(("length", "nesting"), [(1, 1), (3, 2), (4, 5)])
def test_outputs_are_those_of_python(length: int, nesting: int) -> None:
    chance = Random(1)
    for _ in range(300):
        program = draw_program(length, nesting, chance)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program.text, {"__builtins__": {"print": print, "range": range}})
        assert program.output == f"{printed.getvalue().strip()}."


@pytest.mark.parametrize(("length", "nesting"), [(1, 1), (2, 3), (3, 5)])
def test_length_and_nesting_limit_digits_and_operations(length: int, nesting: int) -> None:
    chance, most = Random(1), 0
    for _ in range(200):
        text = draw_program(length, nesting, chance).text
        assert max(map(len, re.findall(r"[0-9]+", text))) <= max(length, len(str(4 * length)))
        operations = re.findall(r"[-+*](?!=)|if|for", text)
        assignments = re.findall(r"^[a-z]=", text, re.MULTILINE)
        most = max(most, len(operations) + len(assignments) - text.count("for"))
    assert most == nesting  # a loop has an assignment, too


def test_loops_take_no_time() -> None:
    text = "a=1\nfor x in range(1000000000000):a+=2\nprint(a)"
    assert run_program(text) == 2 * 10**12 + 1


def test_scrambling_changes_every_character_and_can_be_undone() -> None:
    text = "j=858;for x in range(7):j-=9;print((j if 1<2 else (0*4)))."
    assert all(new != old for new, old in zip(scrambled(text), text, strict=True))
    assert unscrambled(scrambled(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1+1",
        "print(",
        "print(a)",
        "print((1+))",
        "print((1/2))",
        "print(__import__('os'))",
        "import os\nprint(1)",
        "ab=1\nprint(ab)",
        "print((1 if 2 else 3))",
        "print(1)\nprint(2)",
        "print(1/)",
        "print(_1)",
        "print(٣)",
        "for x in range(3):a+=1\nprint(a)",
        f"print({'(' * 5000}1{'+1)' * 5000})",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|cannot read"):
        run_program(text)

"""Small programs: the interpreter of their language against Python, and what it refuses."""

import contextlib
import io
from random import Random

import pytest

from examples.support.programs import draw_program, run_program


@pytest.mark.parametrize(("length", "nesting"), [(1, 1), (3, 2), (4, 5)])
def test_outputs_are_those_of_python(length: int, nesting: int) -> None:
    chance = Random(1)
    for _ in range(300):
        program = draw_program(length, nesting, chance)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program.text, {"__builtins__": {"print": print, "range": range}})
        assert program.output == f"{printed.getvalue().strip()}."


def test_a_program_has_as_many_operations_as_asked() -> None:
    program = draw_program(2, 1, Random(3))
    assert program.text.count("print(") == 1
    assert len(program.text) < 60


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
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|cannot read"):
        run_program(text)

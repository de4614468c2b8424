"""Small programs and their outputs, for learning to execute (Zaremba and Sutskever 2014, section 4).

    j=8584
    for x in range(8):j+=920
    b=(1500+j)
    print((b+7567))                 25011.

`draw_program` draws a program with a number of digits (`length`) and of operations (`nesting`). `run_program` parses and
executes the text of a program; it knows only this language, and never calls Python's own interpreter.

    program     = { statement newline } "print(" expression ")"
    statement   = name "=" expression | "for x in range(" number "):" name ("+" | "-") "=" operand
    expression  = operand | "(" expression ("+" | "-" | "*") expression ")"
                | "(" expression " if " expression (">" | "<") expression " else " expression ")"
    operand     = name | digits
"""

import operator
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

NAMES = "abcdefghijklmnopqrstuvwyz"  # x counts the rounds of a loop
END = "."
_TOKENS = re.compile(r"\d+|[a-z]+|[()+*<>-]| ")
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {">": operator.gt, "<": operator.lt}


class Part(NamedTuple):
    """An expression, and the statements that must come before it."""

    expression: str
    statements: tuple[str, ...] = ()


class Program(NamedTuple):
    """The text of a program and its output, which ends with a period."""

    text: str
    output: str


def draw_program(length: int, nesting: int, chance: Random) -> Program:
    """Draw a program: each operation uses new numbers or the results of earlier operations."""
    names, stack = chance.sample(NAMES, len(NAMES)), list[Part]()
    for _ in range(nesting):
        draw = chance.choice((_addition, _subtraction, _product, _condition, _assignment, _loop))
        stack.append(draw(stack, names, length, chance))
    last = stack[-1]
    text = "\n".join((*last.statements, f"print({last.expression})"))
    return Program(text, f"{run_program(text)}{END}")


def _taken(stack: list[Part], length: int, chance: Random) -> Part:
    """Take the last result with probability 1/2, or a new number."""
    if stack and chance.random() < 0.5:
        return stack.pop()
    return Part(str(chance.randrange(10**length)))


def _joined(parts: Sequence[Part], expression: str, *more: str) -> Part:
    return Part(expression, (*(line for part in parts for line in part.statements), *more))


def _addition(stack: list[Part], names: list[str], length: int, chance: Random) -> Part:
    del names
    a, b = _taken(stack, length, chance), _taken(stack, length, chance)
    return _joined((a, b), f"({a.expression}+{b.expression})")


def _subtraction(stack: list[Part], names: list[str], length: int, chance: Random) -> Part:
    del names
    a, b = _taken(stack, length, chance), _taken(stack, length, chance)
    return _joined((a, b), f"({a.expression}-{b.expression})")


def _product(stack: list[Part], names: list[str], length: int, chance: Random) -> Part:
    """Multiply by a small number, as in the paper: a product of two large ones takes more than a single pass."""
    del names
    a, factor = _taken(stack, length, chance), chance.randint(1, 4 * length)
    ordered = (a.expression, str(factor))
    first, second = ordered if chance.random() < 0.5 else ordered[::-1]
    return _joined((a,), f"({first}*{second})")


def _condition(stack: list[Part], names: list[str], length: int, chance: Random) -> Part:
    del names
    a, b, c, d = (_taken(stack, length, chance) for _ in range(4))
    compared = f"{b.expression}{chance.choice('><')}{c.expression}"
    return _joined((a, b, c, d), f"({a.expression} if {compared} else {d.expression})")


def _assignment(stack: list[Part], names: list[str], length: int, chance: Random) -> Part:
    a, name = _taken(stack, length, chance), names.pop()
    return _joined((a,), name, f"{name}={a.expression}")


def _loop(stack: list[Part], names: list[str], length: int, chance: Random) -> Part:
    a, name = _taken(stack, length, chance), names.pop()
    step, rounds = chance.randrange(10**length), chance.randint(1, 4 * length)
    sign = chance.choice("+-")
    loop = f"for x in range({rounds}):{name}{sign}={step}"
    return _joined((a,), name, f"{name}={a.expression}", loop)


def run_program(text: str) -> int:
    """Execute the text of a program.

    Raises:
        ValueError: The text is not a program of this language.
    """
    lines, values = text.split("\n"), dict[str, int]()
    for line in lines[:-1]:
        _execute(line, values)
    if not (lines[-1].startswith("print(") and lines[-1].endswith(")")):
        raise ValueError(f"expected a program that ends with print(...), got {lines[-1]!r}")
    return _Reader(lines[-1][len("print(") : -1], values).whole()


def _execute(line: str, values: dict[str, int]) -> None:
    """Execute an assignment or a loop."""
    if loop := re.fullmatch(r"for x in range\((\d+)\):([a-z])([+-])=(\d+)", line):
        rounds, name, sign, step = loop.groups()
        change = int(rounds) * int(step)
        values[name] = _ARITHMETIC[sign](values[name], change)
        return
    name, equals, expression = line.partition("=")
    if not equals or name not in list(NAMES):
        raise ValueError(f"expected an assignment or a loop, got {line!r}")
    values[name] = _Reader(expression, values).whole()


class _Reader:
    """Reads one expression from left to right and computes its value."""

    def __init__(self, text: str, values: dict[str, int]) -> None:
        self._tokens, self._values = [*_TOKENS.findall(text), ""], values
        self._at, self._text = 0, text

    def whole(self) -> int:
        """Return the value of the whole text."""
        value = self._expression()
        self._expect("")
        return value

    def _expression(self) -> int:
        if self._next != "(":
            return self._operand()
        self._expect("(")
        first = self._expression()
        if self._next == " ":
            value = self._conditional(first)
        else:
            symbol = self._take()
            if symbol not in _ARITHMETIC:
                raise self._error()
            value = _ARITHMETIC[symbol](first, self._expression())
        self._expect(")")
        return value

    def _conditional(self, first: int) -> int:
        for word in (" ", "if", " "):
            self._expect(word)
        left, symbol = self._expression(), self._take()
        if symbol not in _COMPARISONS:
            raise self._error()
        is_so = _COMPARISONS[symbol](left, self._expression())
        for word in (" ", "else", " "):
            self._expect(word)
        other = self._expression()
        return first if is_so else other

    def _operand(self) -> int:
        token = self._take()
        if token in self._values:
            return self._values[token]
        if token.isdecimal():
            return int(token)
        raise self._error()

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        token = self._next
        self._at += bool(token)
        return token

    def _expect(self, token: str) -> None:
        if self._next != token:
            raise self._error()
        self._at += bool(token)

    def _error(self) -> ValueError:
        return ValueError(f"cannot read {self._text!r} at {self._next!r}")

"""Small programs and their outputs, for learning to execute (Zaremba and Sutskever 2014, section 4).

    j=8584
    for x in range(8):j+=920
    b=(1500+j)
    print((b+7567))                 25011.

`draw_program` draws a program with a number of digits (`length`) and of operations (`nesting`). `run_program` parses and
executes the text of a program. It knows only this language, never calls Python's own interpreter, and is fast
for any number of rounds, because it multiplies instead of looping.

    program     = { statement newline } "print(" expression ")"
    statement   = name "=" expression | "for x in range(" number "):" name ("+" | "-") "=" number
    expression  = name | number | "(" expression ("+" | "-" | "*") expression ")"
                | "(" expression " if " expression (">" | "<") expression " else " expression ")"
"""

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import NamedTuple

NAMES = "abcdefghijklmnopqrstuvwyz"  # x counts the rounds of a loop
END = "."
MAX_DEPTH = 100  # of parentheses: Python's own stack is limited, too
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789()+-*<>=:; ."
_TOKENS = re.compile(r"[0-9]+|[a-z]+|.")
_LOOP = re.compile(r"for x in range\(([0-9]+)\):([a-wyz])([+-])=([0-9]+)")
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
    """Draw a program. Each operation uses new numbers or results of earlier operations; results that no later operation
    uses are left out, so a program has at most `nesting` operations.
    """
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
    *statements, last = text.split("\n")
    values = dict[str, int]()
    for line in statements:
        _execute(line, values)
    if not (last.startswith("print(") and last.endswith(")")):
        raise ValueError(f"expected a program that ends with print(...), got {last!r}")
    return _Evaluator(last.removeprefix("print(")[:-1], values).result()


def _execute(line: str, values: dict[str, int]) -> None:
    """Execute an assignment or a loop."""
    if loop := _LOOP.fullmatch(line):
        rounds, name, sign, step = loop.groups()
        if name not in values:
            raise ValueError(f"expected an assignment to {name} before the loop {line!r}")
        values[name] = _ARITHMETIC[sign](values[name], int(rounds) * int(step))
        return
    name, equals, expression = line.partition("=")
    if not equals or name not in list(NAMES):
        raise ValueError(f"expected an assignment or a loop, got {line!r}")
    values[name] = _Evaluator(expression, values).result()


class _Evaluator:
    """Reads one expression from left to right and computes its value."""

    def __init__(self, text: str, values: Mapping[str, int]) -> None:
        self._text, self._values = text, values
        self._tokens, self._at = [*_TOKENS.findall(text), ""], 0

    def result(self) -> int:
        """Return the value of the whole text."""
        value = self._expression(depth=0)
        self._expect("")
        return value

    def _expression(self, depth: int) -> int:
        if self._next != "(":
            return self._operand()
        if depth == MAX_DEPTH:
            raise ValueError(f"expected at most {MAX_DEPTH} nested parentheses, got more")
        self._expect("(")
        first = self._expression(depth + 1)
        if self._next == " ":
            value = self._conditional(first, depth)
        else:
            symbol = self._choose(_ARITHMETIC)
            value = _ARITHMETIC[symbol](first, self._expression(depth + 1))
        self._expect(")")
        return value

    def _conditional(self, first: int, depth: int) -> int:
        self._expect(" ", "if", " ")
        left, symbol = self._expression(depth + 1), self._choose(_COMPARISONS)
        is_true = _COMPARISONS[symbol](left, self._expression(depth + 1))
        self._expect(" ", "else", " ")
        other = self._expression(depth + 1)
        return first if is_true else other

    def _operand(self) -> int:
        token = self._take()
        if token in self._values:
            return self._values[token]
        if token.isascii() and token.isdecimal():
            return int(token)
        raise self._error(token)

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        token = self._next
        self._at += bool(token)
        return token

    def _choose(self, symbols: Collection[str]) -> str:
        """Take one of some symbols."""
        if (token := self._take()) not in symbols:
            raise self._error(token)
        return token

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            self._choose((token,))

    def _error(self, token: str) -> ValueError:
        return ValueError(f"cannot read {self._text!r} at {token or 'the end'!r}")


def scrambled(text: str) -> str:
    """Replace every character of a program or output by another one, always the same."""
    return text.translate(_SCRAMBLE)


def unscrambled(text: str) -> str:
    """Undo `scrambled`."""
    return text.translate(_UNSCRAMBLE)


_ORDER = "".join(Random(1).sample(_CHARACTERS, len(_CHARACTERS)))
_SCRAMBLE = str.maketrans(_ORDER, _ORDER[1:] + _ORDER[0])
_UNSCRAMBLE = str.maketrans(_ORDER[1:] + _ORDER[0], _ORDER)

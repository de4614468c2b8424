"""Pairs of texts whose alignment follows from their construction.

    formulas    ( + 15 7 1 )   becomes   15 + 7 + 1       each token comes from one token
    commands    walk left twice   becomes   I_TURN_LEFT I_WALK I_TURN_LEFT I_WALK    (SCAN)
    digits      4 0   becomes   f o u r z e r o           in order: each letter comes from one digit

In SCAN the sure link of an action is the word that names it (`walk`, or `left` for a turn). The possible
links are the other words of its phrase that cause it: `turn`, `opposite`, `around`, `twice`, `thrice`. The
conjunctions `and` and `after` have no links.

References: Kim et al. 2017, section 4.1 (formulas); Lake and Baroni 2018, supplement (SCAN grammar).
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from foveal.data import Example
from foveal.data.formats._links import Gold, Link

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TIMES = {"twice": 2, "thrice": 3}


class Known(NamedTuple):
    """A pair of texts, and its gold links."""

    example: Example
    gold: Gold


class Written(NamedTuple):
    """A target token, the position of its sure link, and the positions of its possible links."""

    symbol: str
    sure: int
    possible: tuple[int, ...] = ()


def align_formula(prefix: str) -> Known:
    """Return a formula in prefix notation, its infix notation, and the links between them.

    >>> example, gold = align_formula("( + 15 7 1 )")
    >>> example.target, sorted(gold.sure)
    ('15 + 7 + 1', [(1, 1), (1, 3), (2, 0), (3, 2), (4, 4)])
    """
    symbols = list(enumerate(prefix.split()))
    written = _infix(iter(symbols))
    return _known(prefix, written[1:-1] if len(written) > 1 else written)


def align_command(command: str) -> Known:
    """Return a SCAN command, its actions, and the links between them.

    >>> example, gold = align_command("jump after walk left twice")
    >>> example.target
    'I_TURN_LEFT I_WALK I_TURN_LEFT I_WALK I_JUMP'
    >>> sorted(gold.sure)
    [(0, 4), (2, 1), (2, 3), (3, 0), (3, 2)]
    >>> sorted(gold.possible - gold.sure)
    [(4, 0), (4, 1), (4, 2), (4, 3)]
    """
    words = list(enumerate(command.split()))
    for joint in ("and", "after"):
        if joint in command.split():
            middle = command.split().index(joint)
            first, second = _phrase(words[:middle]), _phrase(words[middle + 1 :])
            return _known(command, first + second if joint == "and" else second + first)
    return _known(command, _phrase(words))


def align_digits(digits: str) -> Known:
    """Return digits, the letters of their names, and the links between them.

    >>> example, gold = align_digits("1 2")
    >>> example.target, sorted(gold.sure)
    ('o n e t w o', [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5)])
    """
    places = enumerate(digits.split())
    return _known(digits, [Written(c, n) for n, digit in places for c in NAMES[int(digit)]])


def draw_digits(number: int, chance: Random, lengths: range = range(3, 13)) -> list[Known]:
    """Draw `number` different sequences of digits."""
    rows: set[str] = set()
    while len(rows) < number:
        rows.add(" ".join(str(chance.randrange(10)) for _ in range(chance.choice(lengths))))
    return [align_digits(row) for row in sorted(rows, key=lambda _: chance.random())]


def read_commands(path: Path) -> Iterator[Known]:
    """Yield the commands of a SCAN file, after checking its actions against the grammar in this module."""
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines():
        command, _, actions = line.removeprefix("IN: ").partition(" OUT: ")
        known = align_command(command)
        assert known.example.target == actions, f"{command}: the grammar gives other actions"
        yield known


def _known(source: str, written: list[Written]) -> Known:
    sure = {(one.sure, place) for place, one in enumerate(written)}
    others = {(word, place) for place, one in enumerate(written) for word in one.possible}
    example = Example(source, " ".join(one.symbol for one in written))
    return Known(example, Gold(frozenset(sure), frozenset[Link](sure | others)))


def _infix(symbols: Iterator[tuple[int, str]]) -> list[Written]:
    """Take one formula off the front; return an empty list if the next token is a closing parenthesis."""
    place, symbol = next(symbols)
    if symbol != "(":
        return [Written(symbol, place)]
    number, name = next(symbols)
    operator = Written(name, number)
    written = [Written("(", place)]
    while True:
        part = _infix(symbols)
        if part[0].symbol == ")":
            return [*written, *part]
        written += [operator, *part] if len(written) > 1 else part


def _phrase(words: list[tuple[int, str]]) -> list[Written]:
    """Read a phrase: walk, walk left, walk opposite left or walk around left; then twice or thrice."""
    last, times = words[-1]
    if times in _TIMES:
        return [
            one._replace(possible=(*one.possible, last))
            for one in _phrase(words[:-1]) * _TIMES[times]
        ]
    (verb, name), *rest = words
    action = [] if name == "turn" else [Written(f"I_{name.upper()}", verb)]
    if not rest:
        return action
    side, direction = rest[-1]
    helpers = tuple(place for place, _ in rest[:-1])
    moved = [one._replace(possible=helpers) for one in action]
    turn = Written(f"I_TURN_{direction.upper()}", side, helpers + (verb,) * (name == "turn"))
    match [word for _, word in rest[:-1]]:
        case []:
            return [turn, *action]
        case ["opposite"]:
            return [turn, turn, *moved]
        case ["around"]:
            return [turn, *moved] * 4
        case other:
            raise AssertionError(f"SCAN has no manner {other}")

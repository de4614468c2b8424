"""Random formulas in prefix and in infix notation (Kim et al. 2017, section 4.1).

    ( * ( + 15 7 1 ) ( + 19 0 ) )   and   ( 15 + 7 + 1 ) * ( 19 + 0 )

Numbers are 0 to 20; an operator has two to four arguments. The paper does not specify how to draw a formula of
a given depth. Here, one argument has the required depth, and each other argument is a number with probability
3/4, or has any smaller depth. A formula of depth 2 has about 12 tokens, a formula of depth 6 about 54.
"""

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from foveal.data import Example, Vocabulary

SYMBOLS = Vocabulary(("(", ")", "+", "*", *map(str, range(21))))
SHARE_OF_NUMBERS = 0.75


class Formula(NamedTuple):
    """The same formula twice, with parentheses around it in both notations."""

    prefix: str
    infix: str


def draw_formula(depth: int, chance: Random) -> Formula:
    """Draw a formula with `depth` pairs of parentheses around its innermost numbers; 0 gives a number."""
    if depth == 0:
        number = str(chance.randint(0, 20))
        return Formula(number, number)
    depths = [depth - 1]
    for _ in range(chance.randint(1, 3)):
        is_number = chance.random() < SHARE_OF_NUMBERS
        depths.append(0 if is_number else chance.randrange(depth))
    chance.shuffle(depths)
    parts = [draw_formula(each, chance) for each in depths]
    operator = chance.choice("+*")
    prefix = " ".join(part.prefix for part in parts)
    infix = f" {operator} ".join(part.infix for part in parts)
    return Formula(f"( {operator} {prefix} )", f"( {infix} )")


def draw_examples(
    depths: Iterable[int], number: int, chance: Random, *, unlike: Iterable[Example] = ()
) -> tuple[Example, ...]:
    """Draw different formulas of each depth, in prefix and infix notation.

    Args:
        depths: the depths, at least 1.
        number: the number of formulas of each depth.
        chance: the random number generator.
        unlike: examples that must not be drawn again.
    """
    seen, examples = {example.source for example in unlike}, list[Example]()
    for depth in depths:
        wanted = len(examples) + number
        while len(examples) < wanted:
            formula = draw_formula(depth, chance)
            if formula.prefix not in seen:
                seen.add(formula.prefix)
                outermost = len("( ")  # parentheses that infix does not need
                examples.append(Example(formula.prefix, formula.infix[outermost:-outermost]))
    return tuple(examples)

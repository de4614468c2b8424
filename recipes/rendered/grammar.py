r"""A grammar of formulas, in the part of LaTeX that matplotlib draws.

    formula     expression | expression relation expression
    expression  term | term + term ...
    term        factor factor ...
    factor      letter | number | letter _ { .. } ^ { .. } | \frac { .. } { .. } | \sqrt { .. }
                | \sin factor | \sum _ { .. } ^ { .. } term | ( expression ) | \hat { letter } ...

A formula is a list of tokens. Formulas that look the same have one spelling: subscripts before
superscripts, braces around both, \left and \right where something higher than a line is inside and
nowhere else; and one of two signs that look alike is left out (l and 1, o and 0, v and \nu, w and \omega).
"""

from collections.abc import Callable
from random import Random

LETTERS = tuple("abcdefghijkmnpqrstuvwxyz")
CAPITALS = tuple("ABCDEFGHKLMNPQRSTUVXYZ")
GREEK = tuple(
    rf"\{name}"
    for name in (
        *("alpha", "beta", "gamma", "delta", "epsilon", "theta", "lambda", "mu", "pi", "rho"),
        *("sigma", "tau", "phi", "chi", "psi"),
        *("Gamma", "Delta", "Theta", "Lambda", "Pi", "Sigma", "Phi", "Psi", "Omega"),
    )
)
DIGITS = tuple("0123456789")
RELATIONS = ("=", "=", "=", "=", "<", ">", r"\leq", r"\geq", r"\neq", r"\approx", r"\in", r"\to")
SIGNS = ("+", "+", "+", "-", "-", "-", r"\pm", r"\times", r"\cdot")
FUNCTIONS = (r"\sin", r"\cos", r"\tan", r"\log", r"\ln", r"\exp")
SUMS = (r"\sum", r"\prod")
ACCENTS = (r"\hat", r"\bar", r"\vec", r"\tilde", r"\dot")
BRACKETS = (("(", ")"), ("(", ")"), ("[", "]"), ("|", "|"), (r"\{", r"\}"))
TALL = frozenset({r"\frac", *SUMS, r"\int"})
SPECIALS = (r"\infty", r"\partial", r"\ldots", r"\nabla")

Tokens = list[str]


def formula(random: Random, size: int) -> Tokens:
    """Draw a formula of at most `size` tokens, usually not much shorter.

    >>> len(formula(Random(3), 12)) <= 12
    True
    """
    return _Writer(random).formula(size)


class _Writer:
    """Writes formulas that fit; every method takes the maximum number of tokens."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def formula(self, size: int) -> Tokens:
        if size < 3 or self._random.random() < 0.45:
            return self.expression(size)
        left = self._random.randint(1, max(1, size // 2))
        first = self.expression(left)
        relation = self._random.choice(RELATIONS)
        return [*first, relation, *self.expression(size - len(first) - 1)]

    def expression(self, size: int) -> Tokens:
        tokens: Tokens = ["-"] if size > 2 and self._random.random() < 0.06 else []
        while True:
            room = size - len(tokens)
            few = self._random.random() < 0.5
            term = self.term(self._random.randint(max(1, room // 3), room) if few else room)
            tokens += term
            if size - len(tokens) < 2 or self._random.random() < 0.2:
                return tokens
            tokens.append(self._random.choice(SIGNS))

    def term(self, size: int) -> Tokens:
        tokens = self.factor(size)
        while size - len(tokens) > 0 and self._random.random() < 0.45:
            factor = self.factor(size - len(tokens))
            if factor[0] in DIGITS:  # 2 x and not x 2
                break
            tokens += factor
        return tokens

    def factor(self, size: int) -> Tokens:
        kinds: list[tuple[int, int, Callable[[int], Tokens]]] = [
            (1, 5, self._atom),
            (5, 5, self._scripted),
            (7, 4, self._fraction),
            (4, 2, self._root),
            (2, 2, self._function),
            (6, 2, self._sum),
            (3, 2, self._bracketed),
            (4, 1, self._accented),
            (8, 1, self._limit),
            (3, 1, self._derived),
        ]
        fitting = [(weight, write) for least, weight, write in kinds if least <= size]
        (write,) = self._random.choices(
            [write for _, write in fitting], [weight for weight, _ in fitting]
        )
        return write(size)

    def _part(self, room: int) -> Tokens:
        """Return an expression that uses a part of the room."""
        return self.expression(self._random.randint(1, max(1, min(room, 12))))

    def _letter(self) -> str:
        return self._random.choice(self._random.choices((LETTERS, CAPITALS, GREEK), (6, 2, 3))[0])

    def _number(self, size: int) -> Tokens:
        digits = [self._random.choice(DIGITS[1:])]
        while len(digits) < size and self._random.random() < 0.25:
            digits.append(self._random.choice(DIGITS))
        return digits

    def _atom(self, size: int) -> Tokens:
        kind = self._random.random()
        if kind < 0.2:
            return self._number(min(size, 3))
        return [self._random.choice(SPECIALS) if kind > 0.97 else self._letter()]

    def _scripted(self, size: int) -> Tokens:
        tokens, room = [self._letter()], size - 1
        both = room >= 8 and self._random.random() < 0.25
        below = both or self._random.random() < 0.5
        if below:
            tokens += self._script("_", room - 4 if both else room)
        if both or not below:
            tokens += self._script("^", size - len(tokens))
        return tokens

    def _script(self, sign: str, room: int) -> Tokens:
        """Return a subscript or superscript: short, mostly a letter or a number."""
        if self._random.random() < 0.7 or room < 6:
            one = self._letter() if self._random.random() < 0.5 else self._number(1)[0]
            inner = [one]
        else:
            inner = self.expression(self._random.randint(2, min(room - 3, 5)))
        return [sign, "{", *inner, "}"]

    def _fraction(self, size: int) -> Tokens:
        above = self._part(size - 6)
        below = self._part(size - 5 - len(above))
        return [r"\frac", "{", *above, "}", "{", *below, "}"]

    def _root(self, size: int) -> Tokens:
        if size >= 7 and self._random.random() < 0.25:
            which = ["[", self._random.choice("3456n"), "]"]
        else:
            which = []
        return [r"\sqrt", *which, "{", *self._part(size - 3 - len(which)), "}"]

    def _function(self, size: int) -> Tokens:
        return [self._random.choice(FUNCTIONS), *self.factor(size - 1)]

    def _sum(self, size: int) -> Tokens:
        """Return a sum with a variable below and sometimes a limit above, or an integral with optional limits."""
        if self._random.random() < 0.5:
            tokens = [r"\int"]
            if size >= 11 and self._random.random() < 0.6:
                tokens += [*self._script("_", 4), *self._script("^", 4)]
            inner = self.term(max(1, size - len(tokens) - 2))
            return [*tokens, *inner, "d", self._random.choice("xyztu")]
        tokens = [self._random.choice(SUMS), "_", "{", self._random.choice("ijkmn")]
        if size >= 12:
            tokens += [
                "=",
                self._random.choice("01"),
                "}",
                "^",
                "{",
                self._random.choice("nmN"),
                "}",
            ]
        else:
            tokens += ["}"]
        return [*tokens, *self.term(size - len(tokens))]

    def _bracketed(self, size: int) -> Tokens:
        inner = self.expression(self._random.randint(1, size - 2))
        opening, closing = self._random.choice(BRACKETS)
        if TALL.intersection(inner):
            return [rf"\left{opening}", *inner, rf"\right{closing}"]
        return [opening, *inner, closing]

    def _accented(self, _size: int) -> Tokens:
        letter = self._random.choice(self._random.choice((LETTERS, CAPITALS)))
        return [self._random.choice(ACCENTS), "{", letter, "}"]

    def _limit(self, size: int) -> Tokens:
        variable = self._random.choice("xyznt")
        to = self._random.choice(("0", r"\infty"))
        return [r"\lim", "_", "{", variable, r"\to", to, "}", *self.factor(size - 7)]

    def _derived(self, size: int) -> Tokens:
        r"""Return f ( x ), or f ^ { \prime } ( x ) if it fits."""
        prime = ["^", "{", r"\prime", "}"] if size >= 8 and self._random.random() < 0.4 else []
        if size < 4 + len(prime):
            return [self._letter()]
        return [self._random.choice("fghFG"), *prime, "(", self._random.choice("xyzt"), ")"]

r"""Canonical LaTeX: formulas that look the same get the same tokens.

    braces      around every argument and nowhere else, subscripts before superscripts
                    {x}^2_i                         x _ { i } ^ { 2 }
                    \frac12                         \frac { 1 } { 2 }
    signs       only visible signs, and one name for each
                    \left( \mathrm{a} \lt b \right)     ( a < b )

Two people rarely write the same LaTeX for the same formula. A model trained on both forms learns to guess which one is
meant, and correct outputs count as wrong.

References: Deng et al. 2017, section 4 (formulas are normalized before training); Mouchère et al. 2014 (a
handwritten formula is correct if its signs and their spatial relations are).
"""

from collections.abc import Sequence
from typing import NamedTuple

# Commands with the number of their arguments; all others are signs without arguments.
_NUM_ARGUMENTS = {
    **dict.fromkeys((r"\frac", r"\dfrac", r"\tfrac", r"\binom", r"\stackrel"), 2),
    **dict.fromkeys((r"\overset", r"\underset"), 2),
    **dict.fromkeys((r"\sqrt", r"\overline", r"\underline", r"\overbrace", r"\underbrace"), 1),
    **dict.fromkeys((r"\bar", r"\hat", r"\vec", r"\dot", r"\ddot", r"\tilde", r"\check"), 1),
    **dict.fromkeys((r"\widehat", r"\widetilde", r"\overrightarrow", r"\pmod"), 1),
    **dict.fromkeys((r"\mathrm", r"\mathbf", r"\mathit", r"\mathcal", r"\mathbb"), 1),
    **dict.fromkeys((r"\mathfrak", r"\mathsf", r"\boldsymbol", r"\operatorname"), 1),
    **dict.fromkeys((r"\text", r"\mbox", r"\textrm", r"\textbf", r"\hspace", r"\label"), 1),
    **dict.fromkeys((r"\begin{array}", r"\begin{tabular}"), 1),
}
_SIZES = frozenset((r"\left", r"\right", r"\big", r"\Big", r"\bigg", r"\Bigg"))
_UNSEEN = _SIZES | {
    *(r"\limits", r"\nolimits", r"\displaystyle", r"\textstyle", r"\mathrm", r"\mathit", r"\rm"),
    *(r"\mbox", r"\text", r"\textrm", r"\operatorname"),
    *(r"\,", r"\:", r"\;", r"\!", "\\ ", r"\quad", r"\qquad", "~"),
}
_NAMES = {
    r"\lt": "<",
    r"\gt": ">",
    r"\le": r"\leq",
    r"\ge": r"\geq",
    r"\ne": r"\neq",
    r"\to": r"\rightarrow",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
}
_DEEPEST = 100  # nested arguments; a formula has ten


class _NoFormulaError(Exception):
    """Tokens that TeX rejects: unbalanced braces, or a missing argument."""


class _Part(NamedTuple):
    """The canonical tokens of a part of a formula, and the position after it."""

    written: list[str]
    end: int
    has_scripts: bool = False  # True if it ends with a subscript or superscript


def with_canonical_braces(symbols: Sequence[str]) -> list[str]:
    r"""Return the tokens with braces around every argument and nowhere else; an invalid formula stays unchanged.

    Args:
        symbols: Tokens of a formula.

    Returns:
        The tokens of the formula in canonical form.

    Examples:
        >>> " ".join(with_canonical_braces(list("{x}^2_i") + ["\\frac", "1", "2"]))
        'x _ { i } ^ { 2 } \\frac { 1 } { 2 }'
    """
    try:
        whole = _sequence(symbols, 0, depth=0)
    except _NoFormulaError:
        return list(symbols)
    return whole.written if whole.end == len(symbols) else list(symbols)


def as_handwritten(symbols: Sequence[str]) -> list[str]:
    r"""Return the tokens without invisible signs, and with one name for each sign.

    Args:
        symbols: Tokens of a formula.

    Returns:
        The tokens of the signs that a reader sees.

    Examples:
        >>> " ".join(as_handwritten(["\\left", "(", "a", "\\lt", "b", "\\right", "."]))
        '( a < b'
    """
    written = list[str]()
    for before, symbol in zip(["", *symbols], symbols, strict=False):
        is_no_bracket = symbol == "." and before in _SIZES
        if symbol not in _UNSEEN and not is_no_bracket:
            written.append(_NAMES.get(symbol, symbol))
    return written


def _sequence(symbols: Sequence[str], at: int, depth: int) -> _Part:
    """Parse everything up to the closing brace, or the end."""
    written, has_scripts = list[str](), False
    while at < len(symbols) and symbols[at] != "}":
        if symbols[at] in ("^", "_"):
            scripts = _scripts(symbols, at, depth)
            written, at, has_scripts = written + scripts.written, scripts.end, True
            continue
        base = _base(symbols, at, depth)
        at, has_scripts = base.end, base.has_scripts
        # TeX rejects a double superscript, which appears if the braces in between are removed.
        is_raised_again = has_scripts and at < len(symbols) and symbols[at] in ("^", "_")
        written += ["{", *base.written, "}"] if is_raised_again else base.written
    return _Part(written, at, has_scripts)


def _base(symbols: Sequence[str], at: int, depth: int) -> _Part:
    """Parse a sign, a command with its arguments, or the content of braces."""
    if depth > _DEEPEST:
        raise _NoFormulaError
    if symbols[at] == "{":
        inner = _sequence(symbols, at + 1, depth + 1)
        if inner.end == len(symbols):
            raise _NoFormulaError
        return inner._replace(end=inner.end + 1)
    written, end = [symbols[at]], at + 1
    if symbols[at] == r"\sqrt" and symbols[end : end + 1] == ["["]:
        option = _option(symbols, end)
        written, end = written + option.written, option.end
    for _ in range(_NUM_ARGUMENTS.get(symbols[at], 0)):
        argument = _argument(symbols, end, depth + 1)
        written, end = written + argument.written, argument.end
    return _Part(written, end)


def _argument(symbols: Sequence[str], at: int, depth: int) -> _Part:
    if at == len(symbols) or symbols[at] in ("}", "^", "_"):
        raise _NoFormulaError
    part = _base(symbols, at, depth)
    return _Part(["{", *part.written, "}"], part.end)


def _option(symbols: Sequence[str], at: int) -> _Part:
    """Parse the optional argument of a root, up to the closing bracket."""
    if "]" not in symbols[at:]:
        raise _NoFormulaError
    end = symbols.index("]", at) + 1
    return _Part(list(symbols[at:end]), end)


def _scripts(symbols: Sequence[str], at: int, depth: int) -> _Part:
    """Parse subscript and superscript in any order, and return the subscript first."""
    found = list[tuple[str, list[str]]]()
    while at < len(symbols) and symbols[at] in ("^", "_"):
        script = _argument(symbols, at + 1, depth + 1)
        found.append((symbols[at], script.written))
        at = script.end
    if len({sign for sign, _ in found}) < len(found):
        raise _NoFormulaError  # a double subscript or superscript
    found.sort(key=lambda each: each[0] == "^")
    return _Part([symbol for sign, argument in found for symbol in (sign, *argument)], at)

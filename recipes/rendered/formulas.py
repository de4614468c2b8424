"""Render formulas with matplotlib's mathtext, without a figure and without its global state.

    tokens -> text -> gray pixels, black on white, with a margin of two

The font is Computer Modern, as in most papers. Invalid formulas give None. The output of a model can thus be
rendered and compared with the image of the reference (rendered-image match).

Axes: h and w height and width.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from itertools import count
from multiprocessing import get_context
from random import Random

import numpy as np
from jaxtyping import UInt8
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser

from .grammar import formula
from .writing import Item

MARGIN = 2  # pixels
POINTS, DPI = 10, 100  # letters of about six pixels, as in im2latex at half its size
MAX_TOKENS = 200  # rendering takes a millisecond per token, and much more with deeply nested braces
SIZES = (10, 20, 40)  # maximum numbers of tokens in the steps of a curriculum
# Number of formulas that several processes draw ahead.
AT_A_TIME = 16_384
_NO_SPACE = re.compile(
    r"(?<![A-Za-z]) | (?![A-Za-z])"
)  # spaces, except between a command and a letter


def render(tokens: Sequence[str]) -> UInt8[np.ndarray, "h w"] | None:
    """Return the image of a formula; None if it is invalid.

    >>> image = render(["x", "^", "{", "2", "}"])
    >>> image is not None and image.ndim, render(["x", "^", "{"])
    (2, None)
    """
    if not tokens or len(tokens) > MAX_TOKENS or any("$" in token for token in tokens):
        return None
    # mathtext treats a space as a letter, which would get the subscripts and superscripts after it.
    text = _NO_SPACE.sub("", " ".join(_displayed(tokens)))
    try:
        drawn = _parser().parse(f"${text}$", dpi=DPI, prop=_font())
    except (ValueError, RecursionError, RuntimeError):  # invalid, too deep, or an unknown sign
        return None
    ink = np.asarray(drawn.image)
    if not ink.any():
        return None
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    inked = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return 255 - np.pad(inked, MARGIN)


def draw_formulas(seed: int, max_tokens: int = SIZES[-1], processes: int = 1) -> Iterator[Item]:
    """Yield formulas forever, uniform over sizes; no two look the same.

    The formulas do not depend on the number of processes.
    """
    known: set[bytes] = set()
    for item in _drawn(partial(_numbered, seed, max_tokens), processes):
        if item is None:
            continue
        digest = sha256(repr(item.picture.shape).encode() + item.picture.tobytes()).digest()
        if digest not in known:
            known.add(digest)
            yield item


def _drawn(draw: Callable[[int], Item | None], processes: int) -> Iterator[Item | None]:
    """Yield the drawing of each number, in order."""
    if processes == 1:
        yield from map(draw, count())
        return
    # Not forked, because the caller may have threads. The pool ends with its consumer.
    with get_context("spawn").Pool(processes) as pool:
        for first in count(step=AT_A_TIME):
            yield from pool.imap(draw, range(first, first + AT_A_TIME), chunksize=64)


def _numbered(seed: int, max_tokens: int, number: int) -> Item | None:
    """Return the formula of a number; None if it cannot be rendered."""
    random = Random(f"formula {seed} {number}")
    tokens = formula(random, random.randint(3, max_tokens))
    image = render(tokens)
    return None if image is None else Item(image, " ".join(tokens), len(tokens))


def _displayed(tokens: Sequence[str]) -> list[str]:
    r"""Return the tokens with \dfrac for top-level fractions, as in a displayed formula: only nested fractions,
    subscripts and superscripts are small.
    """
    written: list[str] = []
    small, num_parts = (
        [False],
        [0],
    )  # for each open brace: its kind, and the number of missing parts of a fraction
    before = ""
    for token in tokens:
        if token == r"\frac":
            num_parts[-1] = 2
        elif token == "{":
            small.append(small[-1] or num_parts[-1] > 0 or before in ("^", "_"))
            num_parts[-1] -= num_parts[-1] > 0
            num_parts.append(0)
        elif token == "}" and len(small) > 1:
            small.pop()
            num_parts.pop()
        written.append(r"\dfrac" if token == r"\frac" and not small[-1] else token)
        before = token
    return written


@cache
def _parser() -> MathTextParser:
    return MathTextParser("agg")


@cache
def _font() -> FontProperties:
    return FontProperties(size=POINTS, math_fontfamily="cm")

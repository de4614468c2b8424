"""Tokens for drawings: visible, escaped, short, and with an estimated width."""

import math
import re
import unicodedata
from collections.abc import Sequence
from itertools import accumulate, islice

import regex

# Characters that XML 1.0 or HTML forbid, and bidirectional controls that reorder the surrounding text.
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(
        f"{chr(0x10000 * plane + 0xFFFE)}{chr(0x10000 * plane + 0xFFFF)}" for plane in range(1, 17)
    )
    + "]"
)
SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"}
REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
MOST_GRAPHEMES = 400  # graphemes considered to fit a label
SMALL = 11.0  # pixels: the size of small print in drawings
LONGEST_TITLE = 120  # graphemes: a longer token would fill the screen when hovered over
DEEPEST_GRAPHEME = 8  # code points: marks piled higher run into the line above

# Widths in ems of the widest common sans serif (DejaVu Sans); other fonts fit too.
NARROW, COMMON, BROAD, FULL = 0.40, 0.64, 0.98, 1.05
NARROW_CHARACTERS = frozenset("ijlI.,:;'|!()[]{} ftr/\"`-")
BROAD_CHARACTERS = frozenset("mwMW@%—")


def legal(text: str) -> str:
    """Remove the characters that XML and HTML forbid."""
    return FORBIDDEN.sub("\ufffd", text)


def _picture(character: str) -> str:
    """Return a visible mark for an invisible character; control pictures are missing from many fonts."""
    return SIGNS.get(character) or f"⟨U+{ord(character):04X}⟩"


def _blank(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in ("Cf", "Zs")


def shown(token: str) -> str:
    r"""Make a token visible: blanks, controls and lone combining marks get a symbol.

    Args:
        token: Any text.

    Returns:
        The text with symbols for invisible characters.

    Examples:
        >>> [shown(token) for token in ("", " ", "a\n", "\u0301", "<b>")]
        ['∅', '␣', 'a↵', '◌́', '<b>']
    """
    if not token:
        return "∅"
    if all(_blank(character) for character in token):
        return "".join(map(_picture, token))
    inner = token.strip(" ")
    lead = len(token) - len(token.lstrip(" "))
    inner = "␣" * lead + inner + "␣" * (len(token) - lead - len(inner))
    inner = re.sub("[\t\n\r\u2028\u2029]", lambda match: _picture(match[0]), inner)
    inner = FORBIDDEN.sub(lambda match: _picture(match[0]), inner)
    inner = REORDERING.sub(lambda match: _picture(match[0]), inner)
    return "◌" + inner if unicodedata.category(inner[0]).startswith("M") else inner


def _graphemes(text: str, limit: int) -> list[str]:
    """Return the first graphemes, without excessive stacked marks."""
    return [match[0][:DEEPEST_GRAPHEME] for match in islice(regex.finditer(r"\X", text), limit)]


def _width(grapheme: str) -> float:
    first = grapheme[0]
    if unicodedata.category(first) == "Cf":
        return 0.0
    if unicodedata.east_asian_width(first) in ("W", "F"):
        return FULL
    if first in NARROW_CHARACTERS:
        return NARROW
    return BROAD if first in BROAD_CHARACTERS else COMMON


def width(text: str) -> float:
    """Estimate the rendered width of a text in ems; the estimate is rather too wide than too narrow."""
    return math.fsum(_width(match[0]) for match in regex.finditer(r"\X", text))


def note_width(note: str) -> float:
    """Return the width of a line of small print, in pixels."""
    return SMALL * width(note)


def _shortened(text: str, ems: float) -> str:
    """Cut a text to a width, with an ellipsis.

    Examples:
        >>> _shortened("a very long label", 6.0)
        'a very lo…'
    """
    graphemes = _graphemes(text, limit=MOST_GRAPHEMES + 1)
    ends = list(accumulate(map(_width, graphemes)))
    if len(graphemes) <= MOST_GRAPHEMES and (not ends or ends[-1] <= ems):
        return "".join(graphemes)
    kept = [each for each, end in zip(graphemes, ends, strict=True) if end <= ems - FULL]
    return "".join(kept).rstrip() + "…"


def isolated(text: str) -> str:
    """Wrap a text in directional isolates: a number after an Arabic word keeps its position."""
    return f"\u2068{text}\u2069"


def short(token: str, ems: float) -> str:
    """Format a token as a label: visible, short, and isolated in its direction."""
    text = _shortened(shown(token), ems)
    return isolated(text) if right_to_left([text]) else text


def bounded(token: str) -> str:
    """Format a whole token, made visible, unless it is too long to read."""
    graphemes = _graphemes(shown(token), limit=LONGEST_TITLE + 1)
    cut = len(graphemes) > LONGEST_TITLE
    return "".join(graphemes[:LONGEST_TITLE]) + ("…" if cut else "")


def named(token: str) -> str:
    """Format a token inside a sentence, such as a title."""
    return isolated(bounded(token))


def right_to_left(tokens: Sequence[str]) -> bool:
    """Return whether most tokens with a direction read from right to left."""
    balance = 0
    for token in tokens:
        for character in token:
            direction = unicodedata.bidirectional(character)
            if direction in ("L", "R", "AL"):
                balance += -1 if direction == "L" else 1
                break
    return balance > 0


def number(value: float) -> str:
    """Format a weight or a probability with few digits; all values under a ten-thousandth look the same.

    Args:
        value: A number of at least 0.

    Returns:
        The number as text.

    Examples:
        >>> [number(value) for value in (1.0, 0.25, 0.00123, 0.00001, 0.0)]
        ['1.000', '0.250', '0.00123', '<0.0001', '0']
    """
    if value == 0:
        return "0"
    if value < 1e-4:
        return "<0.0001"
    return f"{value:.3f}" if value >= 0.01 else f"{value:.3g}"

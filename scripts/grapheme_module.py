"""Write the table of grapheme classes that the JavaScript runtime splits texts with, from the package regex.

    python scripts/grapheme_module.py

Every runtime must split texts like the library, which uses `regex`, regardless of the Unicode version of a browser.
"""

import sys
from pathlib import Path

import regex

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.grapheme_table import class_names, ranges

TARGET = Path(__file__).resolve().parents[1] / "foveal/export/javascript/text/grapheme_table.mjs"
# The letter of each class in graphemes.mjs, which computes the classes of Hangul syllables.
_LETTERS = {
    "CR": "r",
    "LF": "n",
    "CONTROL": "c",
    "EXTEND": "e",
    "JOINER": "j",
    "FLAG": "i",
    "PREPEND": "p",
    "SPACING": "m",
    "HANGUL_L": "l",
    "HANGUL_V": "v",
    "HANGUL_T": "t",
    "PICTURE": "x",
}
_BASE = 36
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def table() -> str:
    """Return the table: for each range its class, the distance from the range before, and its size if it is not 1."""
    entries, at = list[str](), 0
    for first, last, name in ranges(class_names()):
        size = f",{_digits(last - first + 1)}" if last > first else ""
        entries.append(f"{_LETTERS[name]}{_digits(first - at)}{size}")
        at = last + 1
    return " ".join(entries)


def content() -> str:
    """Return the content of the file."""
    return (
        f"/** Grapheme classes, written by scripts/grapheme_module.py with regex {regex.__version__}. */\n\n"
        f'export const TABLE =\n  "{table()}";\n'
    )


def _digits(value: int) -> str:
    return (_digits(value // _BASE) if value >= _BASE else "") + _DIGITS[value % _BASE]


if __name__ == "__main__":
    TARGET.write_text(content(), encoding="utf-8")

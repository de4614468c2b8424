"""Write the table of grapheme classes that the C runtime splits texts with, from the package regex.

python scripts/grapheme_table.py            write runtimes/c/source/grapheme_table.c
python scripts/grapheme_table.py --check    fail when the file differs from the installed version of regex
"""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import regex

TABLE = Path(__file__).resolve().parents[1] / "runtimes/c/source/grapheme_table.c"
# The classes of Unicode Annex 29 in the order of the enum in grapheme_table.h; the C code computes LV and LVT.
CLASSES = {
    "CR": "CR",
    "LF": "LF",
    "CONTROL": "Control",
    "EXTEND": "Extend",
    "JOINER": "ZWJ",
    "FLAG": "Regional_Indicator",
    "PREPEND": "Prepend",
    "SPACING": "SpacingMark",
    "HANGUL_L": "L",
    "HANGUL_V": "V",
    "HANGUL_T": "T",
}
MOST = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)


def class_names() -> list[str]:
    """Return the class of every code point; an empty name for the class of all others."""
    text = "".join("\0" if number in SURROGATES else chr(number) for number in range(MOST + 1))
    names = [""] * (MOST + 1)
    pictures = regex.compile(r"\p{Extended_Pictographic}")
    patterns = {name: regex.compile(rf"\p{{GCB={value}}}") for name, value in CLASSES.items()}
    for name, pattern in {**patterns, "PICTURE": pictures}.items():
        for found in pattern.finditer(text):
            if found.start() not in SURROGATES:
                names[found.start()] = name
    return names


def ranges(names: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the first and the last code point of every run of one class."""
    first = 0
    for name, run in itertools.groupby(names):
        last = first + len(list(run)) - 1
        if name:
            yield first, last, name
        first = last + 1


def content() -> str:
    """Return the C file."""
    rows = [
        f"    {{0x{first:04X}, 0x{last:04X}, {name}}},\n"
        for first, last, name in ranges(class_names())
    ]
    return (
        "/* Grapheme classes of Unicode Annex 29, written by scripts/grapheme_table.py. */\n\n"
        '#include "grapheme_table.h"\n\n'
        f"const grapheme_range grapheme_ranges[] = {{\n{''.join(rows)}}};\n\n"
        "const size_t num_grapheme_ranges = sizeof grapheme_ranges / sizeof *grapheme_ranges;\n"
    )


def main(arguments: list[str]) -> int:
    """Write the file, or compare it with `--check`; 1 if it differs."""
    if arguments != ["--check"]:
        TABLE.write_text(content(), encoding="ascii")
        return 0
    if TABLE.read_text(encoding="ascii") == content():
        return 0
    print(f"{TABLE} differs from regex {regex.__version__}: run python scripts/grapheme_table.py")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

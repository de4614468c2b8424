"""Text to tokens, as pure functions that run without torch.

The package `regex` is needed only for texts in scripts whose graphemes are not a letter with combining marks.
"""

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Literal, TypeAlias

from .._errors import ExportedModelError

NormalForm: TypeAlias = Literal["none", "NFC", "NFD", "NFKC", "NFKD"]

# \X takes a microsecond for each character. Each of these letters (Latin, IPA, Greek, Cyrillic, Armenian,
# Hebrew, Arabic, kana, Han, Hangul syllables) is a grapheme, together with the combining marks after it.
_MARK = "\u0300-\u036f"
_LETTERS = (
    " -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u0590\u05d0-\u05ea\u0620-\u064a"
    "\u3000-\u3029\u3031-\u3096\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
)
_ARE_LETTERS = re.compile(f"[{_LETTERS}]*").fullmatch
_ARE_MARKED_LETTERS = re.compile(f"[{_LETTERS}{_MARK}]*").fullmatch
_MARKED_LETTERS = re.compile(f".[{_MARK}]*").findall
# No-break spaces do not separate tokens: CoNLL-U has words with a space inside. The spaces are written out, because
# languages differ in the meaning of \s.
_SPACE = "\\t-\\r\\x1c-\\x20\\x85\\u1680\\u2000-\\u2006\\u2008-\\u200a\\u2028\\u2029\\u205f\\u3000"
_PIECES = re.compile(f"[^{_SPACE}]+").findall


def graphemes(text: str) -> list[str]:
    r"""Split a text into graphemes: a letter with its marks, a flag, a syllable.

    Args:
        text: Text to split.

    Returns:
        The graphemes, in order.

    Examples:
        >>> [len(grapheme) for grapheme in graphemes("ae\u0301")]
        [1, 2]
    """
    if _ARE_LETTERS(text):
        return list(text)
    return _MARKED_LETTERS(text) if _ARE_MARKED_LETTERS(text) else _clusters()(text)


@functools.cache
def _clusters() -> Callable[[str], list[str]]:
    """Return a function that splits a text by Unicode Annex 29."""
    try:
        # Only some scripts need it.
        import regex  # noqa: PLC0415
    except ImportError as error:
        raise ExportedModelError(
            "the text has graphemes that need the package regex, which is not installed. Install it: "
            "pip install regex."
        ) from error
    return regex.compile(r"\X").findall


def pieces(text: str) -> list[str]:
    """Split a text on whitespace, except no-break spaces.

    Args:
        text: Text to split.

    Returns:
        The pieces without the whitespace between them.

    Examples:
        >>> pieces(" a  few\u00a0words ")
        ['a', 'few\u00a0words']
    """
    # Three searches for one character each take a third of the time of one for a set of characters.
    if "\u00a0" in text or "\u2007" in text or "\u202f" in text:
        return _PIECES(text)
    return text.split()


def normalized(text: str, form: NormalForm) -> str:
    """Convert a text to a Unicode normal form."""
    return text if form == "none" else unicodedata.normalize(form, text)


def characters(
    text: str,
    *,
    unit: Literal["grapheme", "code_point"] = "grapheme",
    spaces: Literal["keep", "drop"] = "keep",
    normalization: NormalForm = "none",
) -> list[str]:
    """Split a text into graphemes or code points.

    Args:
        text: Text to split.
        unit: Graphemes, or code points.
        spaces: Whether spaces are tokens or are dropped.
        normalization: Unicode normal form of the text.

    Returns:
        The tokens.
    """
    if normalization != "none":
        text = normalized(text, normalization)
    if spaces == "drop":
        text = "".join(text.split())
    return list(text) if unit == "code_point" else graphemes(text)


def features(text: str, separator: str) -> list[str]:
    """Split features such as V;IND;PST, without empty ones."""
    parts = text.split(separator) if separator else [text]
    return [part for part in map(str.strip, parts) if part]

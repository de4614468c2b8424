"""Tokenizers as specs: text to tokens and back.

    characters      graphemes, the characters that a reader perceives (Unicode Annex 29); or code
                    points, for scripts with many graphemes made of few parts
    whitespace      whitespace-separated words or phones
    sentencepiece   subwords (Kudo and Richardson 2018), in `_sentencepiece.py`
    features        V;IND;PST, for the features column of inflection
    latex           commands and characters of formulas

`decode(encode(text))` restores the text: exactly for characters, up to the width of spaces for
whitespace, and up to differences that TeX ignores for latex.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import regex
from typing_extensions import override

from ...runtime.text._text import (
    NormalForm as NormalForm,
    characters,
    features,
    graphemes as graphemes,
    normalized as normalized,
    pieces as pieces,
)
from ...specs import setting
from ._base import AbstractTokenizerSpec
from ._latex import as_handwritten, with_canonical_braces
from ._sentencepiece import SentencePieceSpec

ABOUT_FORM = "Unicode normalization form of the text; none: no normalization"

_LATEX: Callable[[str], list[str]] = re.compile(
    r"\\(?:(?:begin|end)\{[A-Za-z]+\*?\}|[A-Za-z]+\*?|.)|\S", re.DOTALL
).findall


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CharacterSpec(AbstractTokenizerSpec):
    """Every character is a token.

    Examples:
        >>> CharacterSpec().encode("señor")
        ['s', 'e', 'ñ', 'o', 'r']
    """

    kind: Literal["characters"] = "characters"
    unit: Literal["grapheme", "code_point"] = setting(
        "grapheme",
        "grapheme: a letter with its marks is one token; code_point: letters and marks "
        "are separate tokens",
    )
    spaces: Literal["keep", "drop"] = setting(
        "keep", "keep spaces as tokens, or drop them, for scripts without spaces between words"
    )
    normalization: NormalForm = setting("none", ABOUT_FORM)

    @override
    def encode(self, text: str) -> list[str]:
        """Convert a text to tokens."""
        return characters(
            text, unit=self.unit, spaces=self.spaces, normalization=self.normalization
        )

    @override
    def decode(self, tokens: Sequence[str]) -> str:
        """Convert tokens to a text."""
        return "".join(tokens)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class WhitespaceSpec(AbstractTokenizerSpec):
    """Tokens are separated by whitespace: words, phones, tags.

    Examples:
        >>> WhitespaceSpec().encode("HH AH0 L OW1")
        ['HH', 'AH0', 'L', 'OW1']
    """

    kind: Literal["whitespace"] = "whitespace"
    normalization: NormalForm = setting("none", ABOUT_FORM)

    @override
    def encode(self, text: str) -> list[str]:
        """Convert a text to tokens."""
        return pieces(normalized(text, self.normalization))

    @override
    def decode(self, tokens: Sequence[str]) -> str:
        """Convert tokens to a text."""
        return " ".join(tokens)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class FeaturesSpec(AbstractTokenizerSpec):
    """Tokens are separated by semicolons or another separator, such as V, IND and PST in V;IND;PST.

    Examples:
        >>> FeaturesSpec().encode("V;IND;NOM(1,PL)")
        ['V', 'IND', 'NOM(1,PL)']
    """

    kind: Literal["features"] = "features"
    separator: str = setting(";", "separator of features: ; in UniMorph, | in UD")

    @override
    def encode(self, text: str) -> list[str]:
        """Convert a text to tokens."""
        return features(text, self.separator)

    @override
    def decode(self, tokens: Sequence[str]) -> str:
        """Convert tokens to a text."""
        return self.separator.join(tokens)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LatexSpec(AbstractTokenizerSpec):
    r"""Tokens are the commands of LaTeX and all other characters except spaces.

    Examples:
        >>> LatexSpec().encode(r"\frac{x^2}{\begin{array}{c}1\end{array}}")[:6]
        ['\\frac', '{', 'x', '^', '2', '}']
        >>> LatexSpec(braces="canonical", signs="handwritten").encode(r"\left\{ x^2_i \right\}")
        ['\\{', 'x', '_', '{', 'i', '}', '^', '{', '2', '}', '\\}']
    """

    kind: Literal["latex"] = "latex"
    braces: Literal["keep", "canonical"] = setting(
        "keep",
        "canonical: braces around every argument and nowhere else, subscripts before superscripts, "
        "so {x}^2_i and x_{i}^{2} are equal",
    )
    signs: Literal["keep", "handwritten"] = setting(
        "keep",
        "handwritten: without distinctions that handwriting does not show (spaces, upright letters, "
        "bracket sizes), one name for each symbol",
    )

    @override
    def encode(self, text: str) -> list[str]:
        """Convert a text to tokens."""
        found = _LATEX(text)
        if self.signs == "handwritten":
            found = as_handwritten(found)
        return found if self.braces == "keep" else with_canonical_braces(found)

    @override
    def decode(self, tokens: Sequence[str]) -> str:
        """Convert tokens to a text."""
        return " ".join(tokens)


TokenizerSpec = (
    CharacterSpec
    | WhitespaceSpec
    | SentencePieceSpec
    | FeaturesSpec
    | LatexSpec
    | AbstractTokenizerSpec
)


@functools.cache
def is_unspaced(character: str) -> bool:
    """Return True if the character belongs to a script that is written without spaces between words."""
    return _UNSPACED.match(character) is not None


_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")

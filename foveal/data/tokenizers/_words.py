"""Which word each symbol of a text belongs to, whatever the symbols are.

    text      no way           words are what stands between spaces
    symbols   n o _ w a y      characters; of_symbol = 0 0 - 1 1 1
    symbols   no_ way          subwords; a piece with a space at either end belongs to its word

Tokenizers change a text in few ways: they drop spaces, or bring it to a normal form, or write
characters they do not know as bytes. So symbols and words are laid side by side byte for byte.

Words are counted as alignment files do, by spaces alone: Japanese ones have the wide space U+3000 as a
word, which a tokenizer may leave out. Such a word has no symbol.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...errors import DataError
from .._example import quoted
from ._sentencepiece import SentencePieceSpec
from ._tokenizers import (
    CharacterSpec,
    TokenizerSpec,
    WhitespaceSpec,
    normalized,
)

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # how sentencepiece writes a space
_BYTE = re.compile("<0x[0-9A-F]{2}>").fullmatch  # and a byte of a character it does not know


class Words(NamedTuple):
    """The words of a text, and for each of its symbols the number of its word; None for a space."""

    words: tuple[str, ...]
    of_symbol: tuple[int | None, ...]


def words_of(tokenizer: TokenizerSpec, text: str) -> Words:
    """The words of a text and the symbols that a tokenizer makes of them. The symbols of features
    and of LaTeX, and of a tokenizer from elsewhere, are words themselves.

    >>> words_of(CharacterSpec(), "no way")
    Words(words=('no', 'way'), of_symbol=(0, 0, None, 1, 1, 1))
    """
    symbols = tokenizer.encode(text)
    if not isinstance(tokenizer, CharacterSpec | WhitespaceSpec | SentencePieceSpec):
        return Words(tuple(symbols), tuple(range(len(symbols))))
    owners = [owner for owner, part in _parts(text) for _ in _bytes_of_text(tokenizer, part)]
    of_symbol: list[int | None] = []
    at = 0
    for symbol in symbols:
        size = _num_bytes_of_symbol(tokenizer, symbol)
        here = (owner for owner in owners[at : at + size] if owner is not None)
        of_symbol.append(next(here, None))
        at += size
    if at != len(owners):
        raise DataError(
            f"words_of: the symbols of {quoted(text)} cannot be laid beside its words. "
            f"Align symbols instead: units symbols."
        )
    return Words(split_words(text), tuple(of_symbol))


def split_words(text: str) -> tuple[str, ...]:
    """What stands between spaces.

    >>> split_words(" a  b\u3000c ")
    ('a', 'b\u3000c')
    """
    return tuple(word for word in text.split(" ") if word)


def _parts(text: str) -> Iterator[tuple[int | None, str]]:
    """The words of a text with their numbers, and what stands between them."""
    at = 0
    for number, word in enumerate(split_words(text)):
        start = text.index(word, at)
        yield None, text[at:start]
        yield number, word
        at = start + len(word)
    yield None, text[at:]


def _bytes_of_text(
    tokenizer: CharacterSpec | WhitespaceSpec | SentencePieceSpec, part: str
) -> bytes:
    """What symbols have of a part of a text."""
    if isinstance(tokenizer, SentencePieceSpec):
        return part.replace(_SPACE, " ").encode()
    part = normalized(part, tokenizer.normalization)
    return (part if _keeps_spaces(tokenizer) else "".join(part.split())).encode()


def _num_bytes_of_symbol(
    tokenizer: CharacterSpec | WhitespaceSpec | SentencePieceSpec, symbol: str
) -> int:
    if isinstance(tokenizer, SentencePieceSpec):
        return 1 if _BYTE(symbol) else len(symbol.replace(_SPACE, " ").encode())
    return len((symbol if _keeps_spaces(tokenizer) else "".join(symbol.split())).encode())


def _keeps_spaces(tokenizer: CharacterSpec | WhitespaceSpec) -> bool:
    return isinstance(tokenizer, CharacterSpec) and tokenizer.spaces == "keep"

"""Map each token of a text to its word, for any tokenizer.

    text      no way           words are whitespace-separated
    tokens    n o _ w a y      characters; of_symbol = 0 0 - 1 1 1
    tokens    no_ way          subwords; a piece with a space at either end belongs to its word

Tokenizers change a text in few ways: they drop spaces, apply a normal form, or write unknown characters as bytes.
Tokens and words can therefore be aligned byte by byte.

Words are split as in alignment files, only at spaces. Japanese files contain the wide space U+3000 as a word, which a
tokenizer may drop. Such a word has no token.
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

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # the character that sentencepiece writes for a space
_BYTE = re.compile("<0x[0-9A-F]{2}>").fullmatch  # a byte of an unknown character


class Words(NamedTuple):
    """The words of a text, and the word index of each token; None for a space."""

    words: tuple[str, ...]
    of_symbol: tuple[int | None, ...]


def words_of(tokenizer: TokenizerSpec, text: str) -> Words:
    """Return the words of a text and the word of each token of a tokenizer. For features, LaTeX and user-defined
    tokenizers, each token is a word.

    Args:
        tokenizer: Tokenizer of the text.
        text: Text to split.

    Returns:
        The words, and for each token the index of its word, or None for a token between words.

    Raises:
        DataError: The tokens do not add up to the text.

    Examples:
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
            f"words_of: the tokens of {quoted(text)} do not match its words. Align tokens instead: "
            f"units symbols."
        )
    return Words(split_words(text), tuple(of_symbol))


def split_words(text: str) -> tuple[str, ...]:
    """Split a text at spaces.

    Args:
        text: Text to split.

    Returns:
        The words without the spaces between them.

    Examples:
        >>> split_words(" a  b\u3000c ")
        ('a', 'b\u3000c')
    """
    return tuple(word for word in text.split(" ") if word)


def _parts(text: str) -> Iterator[tuple[int | None, str]]:
    """Yield the words of a text with their indices, and the spaces between them."""
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
    """Return the bytes of a part of a text that its tokens contain."""
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

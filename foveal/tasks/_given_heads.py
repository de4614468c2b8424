"""Texts with given heads: each token is a word, a colon and the position of its head.

They:2 buy:0 books:2         heads count from 1, and 0 is the root
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import DataError


class HeadedText(NamedTuple):
    """The words of a text and the position of the head of each."""

    words: list[str]
    heads: list[int]


def read_heads(tokens: Sequence[str]) -> HeadedText:
    """Split tokens into words and heads.

    Args:
        tokens: Tokens such as `buy:0`; the last colon separates word and head.

    Returns:
        The words and the heads.

    Raises:
        DataError: If a token has no head, or a head is not a position of the text.

    Examples:
        >>> read_heads("They:2 buy:0 books:2".split())
        HeadedText(words=['They', 'buy', 'books'], heads=[2, 0, 2])
    """
    found = HeadedText([], [])
    for token in tokens:
        word, _, head = token.rpartition(":")
        if not word or not head.isdecimal() or int(head) > len(tokens):
            raise DataError(
                f"token {token!r}, expected a word, a colon and its head from 0 (root) to {len(tokens)}, such as "
                f"buy:0. Write a head for every word, or choose an encoder without given heads."
            )
        found.words.append(word)
        found.heads.append(int(head))
    return found

"""Spelling features of words, as hashed numbers.

    "Redondo"   redondo | r re red | o do ndo ondo | Xx

References: Ratnaparkhi 1996 (prefixes, suffixes); Collins 2002 (shapes); Weinberger et al. 2009 (hashing).
"""

import functools
import re
import zlib

# "aaa" and "aaaa" have the same shape, and so have "Tokyo" and "Osaka".
_REPEATED = re.compile(r"(.)\1+")
_LONGEST_SHAPE = 12
# Maximum number of distinct words whose features are cached: the frequent words of any text, in about 30 MB.
_MOST_KEPT = 50_000


def spelling_features(word: str, prefixes: int, suffixes: int) -> tuple[str, ...]:
    """Return the features of a word as text.

    Args:
        word: Word as written.
        prefixes: Maximum length of a prefix.
        suffixes: Maximum length of a suffix.

    Returns:
        The word in lowercase, its prefixes, its suffixes and its shape.
    """
    lower = word.lower()
    return (
        f"low:{lower}",
        *(f"p{size}:{lower[:size]}" for size in range(1, prefixes + 1)),
        *(f"s{size}:{lower[-size:]}" for size in range(1, suffixes + 1)),
        f"shape:{word_shape(word)}",
    )


@functools.lru_cache(_MOST_KEPT)
def spelling_numbers(word: str, prefixes: int, suffixes: int, num_buckets: int) -> tuple[int, ...]:
    """Return the ids of the features of a word.

    Args:
        word: Word as written.
        prefixes: Maximum length of a prefix.
        suffixes: Maximum length of a suffix.
        num_buckets: Number of ids.

    Returns:
        An id below `num_buckets` for each feature.
    """
    return tuple(
        zlib.crc32(feature.encode("utf-8", "surrogatepass")) % num_buckets
        for feature in spelling_features(word, prefixes, suffixes)
    )


def word_shape(word: str) -> str:
    """Return the classes of a word's characters: X uppercase, x lowercase, d digit; other characters are unchanged.
    Runs of three or more equal classes are shortened to two.

    Args:
        word: Word as written.

    Returns:
        The shape of the word.

    Examples:
        >>> " ".join(word_shape(word) for word in ("Tokyo", "iPhone", "1,000", "NASA", "@you"))
        'Xxx xXxx d,dd XX @xx'
    """
    kinds = "".join(
        "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
    )
    return _REPEATED.sub(r"\1\1", kinds)[:_LONGEST_SHAPE]

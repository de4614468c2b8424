"""Spelling features of a word: its lowercase form, prefixes, suffixes and shape, as hashed numbers.

    "Redondo"   redondo | r re red | o do ndo ondo | Xx

A tagger that knows only whole words knows nothing about a new word. Most new words still have a familiar suffix, prefix
and capitalization. Each feature is a string, and its id is a hash of the string, so there is no vocabulary to count and
no unknown feature.

References: Ratnaparkhi 1996 (prefixes, suffixes); Collins 2002 (shapes); Weinberger et al. 2009 (hashing).
"""

import functools
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from ...specs import setting

# "aaa" and "aaaa" have the same shape, and so have "Tokyo" and "Osaka".
_REPEATED = re.compile(r"(.)\1+")
_LONGEST_SHAPE = 12
# Maximum number of distinct words whose features are cached: the frequent words of any text, in about 30 MB.
_MOST_KEPT = 50_000


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SpellingSpec:
    """Spelling features of a word that a model reads in addition to the word.

    Examples:
        >>> spec = SpellingSpec(prefixes=2, suffixes=2)
        >>> spec.features("Reading")
        ('low:reading', 'p1:r', 'p2:re', 's1:g', 's2:ng', 'shape:Xxx')
        >>> len(spec.encode(["Reading", "is", "fun"])) == 3 * spec.num_features
        True
    """

    kind: Literal["spelling"] = "spelling"
    prefixes: int = setting(
        3,
        "maximum length of a prefix, in characters; shorter prefixes are features too",
        at_least=0,
    )
    suffixes: int = setting(
        4,
        "maximum length of a suffix, in characters; shorter suffixes are features too",
        at_least=0,
    )
    num_buckets: int = setting(
        20_000, "number of hash buckets; features with the same hash share an embedding", at_least=1
    )

    @property
    def num_features(self) -> int:
        """Number of features of each word: its lowercase form, prefixes, suffixes, and its shape."""
        return 2 + self.prefixes + self.suffixes

    def features(self, word: str) -> tuple[str, ...]:
        """Return the features of a word as text.

        Args:
            word: Word as written.

        Returns:
            `num_features` features: the word in lowercase, its prefixes, its suffixes and its shape.
        """
        lower = word.lower()
        return (
            f"low:{lower}",
            *(f"p{size}:{lower[:size]}" for size in range(1, self.prefixes + 1)),
            *(f"s{size}:{lower[-size:]}" for size in range(1, self.suffixes + 1)),
            f"shape:{word_shape(word)}",
        )

    def encode(self, words: Sequence[str]) -> list[int]:
        """Convert words to the ids of their features.

        Args:
            words: Words as written.

        Returns:
            The ids of all words in one row, `num_features` for each word and each id below `num_buckets`.
        """
        return [number for word in words for number in _numbers(self, word)]


@functools.lru_cache(_MOST_KEPT)
def _numbers(spec: SpellingSpec, word: str) -> tuple[int, ...]:
    return tuple(
        zlib.crc32(feature.encode("utf-8", "surrogatepass")) % spec.num_buckets
        for feature in spec.features(word)
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

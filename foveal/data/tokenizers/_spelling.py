"""Spelling features of a word: its lowercase form, prefixes, suffixes and shape, as hashed numbers.

    "Redondo"   redondo | r re red | o do ndo ondo | Xx

A tagger that knows only whole words cannot tell anything about a word that it has never seen. Most such
words still have an ending, a beginning and a capitalization that were seen. Each feature is a string,
and its number is a hash of it, so that there is no vocabulary to count and no unknown feature.

References: Ratnaparkhi 1996 (prefixes, suffixes); Collins 2002 (shapes); Weinberger et al. 2009 (hashing).
"""

import functools
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from ...specs import setting

# "aaa" and "aaaa" have one shape, and so have "Tokyo" and "Osaka".
_REPEATED = re.compile(r"(.)\1+")
_LONGEST_SHAPE = 12
# Distinct words whose features are kept in memory: the frequent ones of any text, in some 30 MB.
_MOST_KEPT = 50_000


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SpellingSpec:
    """Which features of a word's spelling are read next to the word itself.

    >>> spec = SpellingSpec(prefixes=2, suffixes=2)
    >>> spec.features("Reading")
    ('low:reading', 'p1:r', 'p2:re', 's1:g', 's2:ng', 'shape:Xxx')
    >>> len(spec.encode(["Reading", "is", "fun"])) == 3 * spec.num_features
    True
    """

    kind: Literal["spelling"] = "spelling"
    prefixes: int = setting(
        3, "longest prefix, in characters; every shorter one is read too", at_least=0
    )
    suffixes: int = setting(
        4, "longest suffix, in characters; every shorter one is read too", at_least=0
    )
    num_buckets: int = setting(
        20_000, "rows of the table of features; features with the same hash share a row", at_least=1
    )

    @property
    def num_features(self) -> int:
        """Features of each word: its lowercase form, prefixes, suffixes, and its shape."""
        return 2 + self.prefixes + self.suffixes

    def features(self, word: str) -> tuple[str, ...]:
        """The features of a word as text, `num_features` of them."""
        lower = word.lower()
        return (
            f"low:{lower}",
            *(f"p{size}:{lower[:size]}" for size in range(1, self.prefixes + 1)),
            *(f"s{size}:{lower[-size:]}" for size in range(1, self.suffixes + 1)),
            f"shape:{word_shape(word)}",
        )

    def encode(self, words: Sequence[str]) -> list[int]:
        """The features of words one after another, each as a number below `num_buckets`."""
        return [number for word in words for number in _numbers(self, word)]


@functools.lru_cache(_MOST_KEPT)
def _numbers(spec: SpellingSpec, word: str) -> tuple[int, ...]:
    return tuple(
        zlib.crc32(feature.encode("utf-8", "surrogatepass")) % spec.num_buckets
        for feature in spec.features(word)
    )


def word_shape(word: str) -> str:
    """The kinds of a word's characters: X uppercase, x lowercase, d digit, other characters themselves.
    Two of a kind in a row stand for any larger number.

    >>> " ".join(word_shape(word) for word in ("Tokyo", "iPhone", "1,000", "NASA", "@you"))
    'Xxx xXxx d,dd XX @xx'
    """
    kinds = "".join(
        "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
    )
    return _REPEATED.sub(r"\1\1", kinds)[:_LONGEST_SHAPE]

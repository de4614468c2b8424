"""Spelling features of a word: its lowercase form, prefixes, suffixes and shape, as hashed numbers.

    "Redondo"   redondo | r re red | o do ndo ondo | Xx

A tagger that knows only whole words knows nothing about a new word. Most new words still have a familiar suffix, prefix
and capitalization. Each feature is a string, and its id is a hash of the string, so there is no vocabulary to count and
no unknown feature.

References: Ratnaparkhi 1996 (prefixes, suffixes); Collins 2002 (shapes); Weinberger et al. 2009 (hashing).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from ...runtime.text._spelling import (
    spelling_features,
    spelling_numbers,
    word_shape as word_shape,
)
from ...specs import setting


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
        return spelling_features(word, self.prefixes, self.suffixes)

    def encode(self, words: Sequence[str]) -> list[int]:
        """Convert words to the ids of their features.

        Args:
            words: Words as written.

        Returns:
            The ids of all words in one row, `num_features` for each word and each id below `num_buckets`.
        """
        sizes = self.prefixes, self.suffixes, self.num_buckets
        return [number for word in words for number in spelling_numbers(word, *sizes)]

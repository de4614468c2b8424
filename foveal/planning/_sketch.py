"""Find equal examples in bounded memory.

A sketch keeps two 64-bit hashes of each example: one of the input (source and features), one of the whole example.
When there are too many, it keeps only input hashes that end in a 0 bit, then in two, and so on. Examples with equal
sources are kept or dropped together in every corpus, so the counts of duplicates and leaks in the sample estimate the
counts in the whole corpus (Broder 1997, sampling modulo m).
"""

from array import array
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, UInt

from ..data._example import Example, Where

_LINE_BITS = 40


class Keys(NamedTuple):
    """Hashes and locations of examples, sorted by the hash of the input, then of the whole example."""

    asked: UInt[np.ndarray, " n"]
    whole: UInt[np.ndarray, " n"]
    places: Int[np.ndarray, " n"]

    def repeats(self) -> Bool[np.ndarray, " n"]:
        """Return a mask that is True on an example that equals the previous one."""
        again = np.zeros(len(self.whole), dtype=bool)
        again[1:] = (self.whole[1:] == self.whole[:-1]) & (self.asked[1:] == self.asked[:-1])
        return again

    def contradictions(self) -> Bool[np.ndarray, " n"]:
        """Return a mask that is True on the first example, for each source, that has the source of the previous
        example and another target.
        """
        changes = np.zeros(len(self.whole), dtype=bool)
        same = self.asked[1:] == self.asked[:-1]
        changes[1:] = same & (self.whole[1:] != self.whole[:-1])
        found = np.flatnonzero(changes)
        _, first = np.unique(self.asked[found], return_index=True)
        only = np.zeros_like(changes)
        only[found[first]] = True
        return only


class Sketch:
    """Hashes of the examples of one corpus."""

    def __init__(self, max_held: int) -> None:
        self.num_bits = 0  # trailing 0 bits of an input hash: one in 2 ** num_bits is kept
        self._max_held = max_held
        self._asked, self._whole, self._places = array("Q"), array("Q"), array("q")
        self._files: list[str] = []
        self._numbers: dict[str, int] = {}

    def add(self, example: Example, where: Where) -> None:
        """Add an example, if its hash is in the sample."""
        asked = _hash(f"{example.source}\0{example.features}")
        if asked & ((1 << self.num_bits) - 1):
            return
        if where.file not in self._numbers:
            self._numbers[where.file] = len(self._files)
            self._files.append(where.file)
        self._asked.append(asked)
        self._whole.append(_hash(f"{asked}\0{example.target}"))
        self._places.append(self._numbers[where.file] << _LINE_BITS | where.line)
        if len(self._asked) > self._max_held:
            kept = self.keys(self.num_bits + 1)
            self.num_bits += 1
            self._asked = array("Q", kept.asked.tobytes())
            self._whole = array("Q", kept.whole.tobytes())
            self._places = array("q", kept.places.tobytes())

    def keys(self, num_bits: int) -> Keys:
        """Return the sorted keys of one in 2 ** num_bits sources."""
        asked = np.array(self._asked, dtype=np.uint64)
        whole = np.array(self._whole, dtype=np.uint64)
        places = np.array(self._places, dtype=np.int64)
        kept = asked & np.uint64((1 << num_bits) - 1) == 0
        order = np.lexsort((places[kept], whole[kept], asked[kept]))
        return Keys(asked[kept][order], whole[kept][order], places[kept][order])

    def where(self, place: int) -> Where:
        """Return the file and line of a location."""
        return Where(self._files[place >> _LINE_BITS], place & ((1 << _LINE_BITS) - 1))


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")

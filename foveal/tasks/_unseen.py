"""Unseen tokens of one example, for models that copy, and the targets of models that point.

    ids:  0 ... W-1 the vocabulary,   W ... W+N-1 the first N different unseen tokens of the source, in order

The slots have embeddings like other tokens, so a model learns to treat "the first unseen token" alike in all examples;
the token behind a slot depends on the example.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ..data import Example, Vocabulary
from ..errors import DataError
from ..runtime.text._vocabulary import tokens_with_slots, unseen_slots, with_slots


@final
@dataclass(frozen=True, slots=True)
class UnseenTokens:
    """A vocabulary, extended by slots for unseen tokens; without slots, it is the vocabulary itself.

    Examples:
        >>> extended = UnseenTokens(Vocabulary(("a", "b")), 2)
        >>> slots = extended.slots("axbyx")
        >>> extended.encode("axbyx", slots), extended.encode("yz", slots)
        ([4, 6, 5, 7, 6], [7, 1])
        >>> extended.decode([4, 7, 3], slots)
        ['a', 'y']
    """

    vocabulary: Vocabulary
    num_slots: int

    def __len__(self) -> int:
        return len(self.vocabulary) + self.num_slots

    def slots(self, source: Sequence[str]) -> dict[str, int]:
        """Give an id to each of the first different unseen tokens of a source."""
        return unseen_slots(source, self.vocabulary, len(self.vocabulary), self.num_slots)

    def encode(self, tokens: Iterable[str], slots: Mapping[str, int]) -> list[int]:
        """Convert tokens to ids; a token in neither vocabulary nor slots is unknown."""
        if not slots:  # also for every example of a model that does not copy
            return self.vocabulary.encode(tokens)
        tokens = list(tokens)
        return with_slots(self.vocabulary.encode(tokens), tokens, slots)

    def decode(self, numbers: Iterable[int], slots: Mapping[str, int]) -> list[str]:
        """Convert ids to tokens, up to the first end token; an empty slot is unknown."""
        if not self.num_slots:
            return self.vocabulary.decode(numbers)
        return tokens_with_slots(numbers, self.vocabulary.tokens, slots)


def check_pointed(example: Example, source: Sequence[str], target: Sequence[str]) -> None:
    """Check that a decoder that points can write the target."""
    known = set(source)
    missing = next((token for token in target if token not in known), None)
    if missing is not None:
        raise DataError(
            f"Transduction: with decoder.point, every token of a target must be a token of its source, got the token "
            f"{missing!r} in the target {example.target!r}. Remove the example, or set decoder.point to false and "
            f"decoder.copy to true."
        )

"""Vocabulary: tokens and their ids.

    0 padding    1 unknown    2 begin    3 end    4, 5, ... the tokens, most frequent first

The four special tokens have ids but no text, so a text that contains "<end>" is read like any other text.
"""

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from ...errors import DataError
from ...runtime.text._vocabulary import (
    BEGIN as BEGIN,
    END as END,
    NUM_SPECIAL,
    PADDING as PADDING,
    UNKNOWN as UNKNOWN,
    UNKNOWN_TEXT as UNKNOWN_TEXT,
    Numbers,
    tokens_of,
)

# Maximum number of distinct tokens that are counted, in about 100 MB. Beyond it, the rarest are dropped.
MAX_COUNTED = 1_000_000
_AT_ONCE = 100  # texts


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens and their ids, from 4 on.

    Examples:
        >>> vocabulary = Vocabulary(("a", "b"))
        >>> vocabulary.encode(["b", "a", "c"])
        [5, 4, 1]
        >>> vocabulary.decode([2, 5, 4, 1, 3, 0])
        ['b', 'a', '\N{REPLACEMENT CHARACTER}']
        >>> len(vocabulary)
        6
    """

    tokens: tuple[str, ...]
    _numbers: Numbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = _numbered(self.tokens, "Vocabulary", first=NUM_SPECIAL)
        object.__setattr__(self, "_numbers", Numbers(numbers))

    @classmethod
    def count(
        cls,
        texts: Iterable[Sequence[str]],
        *,
        min_count: int = 1,
        max_size: int | None = None,
        max_counted: int = MAX_COUNTED,
    ) -> "Vocabulary":
        """Count the tokens of texts, most frequent first; ties are sorted by code point.

        Memory is bounded: when there are more than `max_counted` distinct tokens, the rarest are dropped (lossy
        counting, Manku and Motwani 2002), so counts of rare tokens in a very large corpus are lower bounds.

        Args:
            texts: The tokens of each text.
            min_count: Drop tokens with a lower count.
            max_size: Maximum size of the vocabulary, including the four special tokens.
            max_counted: Maximum number of distinct tokens counted at once.

        Returns:
            The vocabulary.
        """
        counts: Counter[str] = Counter()
        texts = iter(texts)
        for text in texts:  # several at once, because a call of update takes longer than a word
            counts.update(chain(text, chain.from_iterable(islice(texts, _AT_ONCE))))
            counts = bounded_counts(counts, max_counted)
        return cls.of(counts, min_count=min_count, max_size=max_size)

    @classmethod
    def of(
        cls, counts: Mapping[str, int], *, min_count: int = 1, max_size: int | None = None
    ) -> "Vocabulary":
        """Create a vocabulary from counts, most frequent first; ties are sorted by code point.

        Args:
            counts: Number of occurrences of each token.
            min_count: Tokens with a lower count are dropped.
            max_size: Maximum size of the vocabulary, including the four special tokens; None keeps all tokens.

        Returns:
            The vocabulary.
        """
        kept = sorted(
            (token for token, n in counts.items() if n >= min_count),
            key=lambda token: (-counts[token], token),
        )
        return cls(tuple(kept[: None if max_size is None else max(0, max_size - NUM_SPECIAL)]))

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Convert tokens to ids; the id of an unknown token is 1.

        Args:
            tokens: Tokens of a text.

        Returns:
            One id per token.
        """
        return list(map(self._numbers.__getitem__, tokens))

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Convert ids to tokens, up to the first end token. Padding and begin tokens are skipped.

        Args:
            numbers: Ids, for example the output of a decoder.

        Returns:
            The tokens; an unknown token is U+FFFD.
        """
        return tokens_of(numbers, self.tokens)

    def __len__(self) -> int:
        return NUM_SPECIAL + len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._numbers

    def to_json(self) -> str:
        """Convert to JSON.

        Returns:
            A JSON list of the tokens.
        """
        return json.dumps(self.tokens, ensure_ascii=False, indent=0)

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """Read JSON that `to_json` wrote.

        Args:
            text: A JSON list of tokens.

        Returns:
            The vocabulary.

        Raises:
            DataError: The text is not a JSON list of strings.
        """
        return cls(_strings(text, "Vocabulary"))


@dataclass(frozen=True, slots=True)
class Labels:
    """The names of classes or tags and their ids, from 0 on; there is no unknown label.

    Examples:
        >>> labels = Labels(("no", "yes"))
        >>> labels.number("yes"), labels.names[0]
        (1, 'no')
    """

    names: tuple[str, ...]
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", _numbered(self.names, "Labels", first=0))

    @classmethod
    def count(cls, texts: Iterable[Sequence[str]]) -> "Labels":
        """Collect every name that occurs, sorted by code point."""
        return cls(tuple(sorted({name for text in texts for name in text})))

    def number(self, name: str) -> int:
        """Return the id of a name; raise `DataError` for a name that does not occur in the training set."""
        try:
            return self._numbers[name]
        except KeyError:
            near = difflib.get_close_matches(name, self.names, n=1)
            hint = (
                f"Did you mean {near[0]!r}?"
                if near
                else "Correct it, or add it to the training data."
            )
            listed = ", ".join(repr(known) for known in self.names[:8])
            more = f" and {len(self.names) - 8} more" if len(self.names) > 8 else ""
            raise DataError(
                f"the label {name!r} does not occur in the training data, expected one of "
                f"{listed}{more}. {hint}"
            ) from None

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def to_json(self) -> str:
        """Return a JSON list of the names."""
        return json.dumps(self.names, ensure_ascii=False, indent=0)

    @classmethod
    def from_json(cls, text: str) -> "Labels":
        """Read JSON that `to_json` wrote."""
        return cls(_strings(text, "Labels"))


def bounded_counts(counts: Counter[str], most: int = MAX_COUNTED) -> Counter[str]:
    """Return the counts. If there are more than `most` tokens, drop the tokens seen once, twice, ... until at most half
    of that number remain.
    """
    if len(counts) <= most:
        return counts
    floor = 0
    while len(counts) > most // 2:
        floor += 1
        counts = Counter({token: n for token, n in counts.items() if n > floor})
    return counts


def _numbered(tokens: tuple[str, ...], owner: str, *, first: int) -> dict[str, int]:
    numbers = {token: number for number, token in enumerate(tokens, first)}
    if len(numbers) < len(tokens):
        twice = next(token for token, n in Counter(tokens).items() if n > 1)
        raise DataError(f"{owner}: {twice!r} occurs twice, expected once. Remove one.")
    return numbers


def _strings(text: str, owner: str) -> tuple[str, ...]:
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{owner}: invalid JSON: {error}. Expected the output of to_json; write it again."
        ) from None
    if not isinstance(data, list) or not all(isinstance(item, str) for item in data):
        raise DataError(f"{owner}: expected a JSON list of strings. Use the output of to_json.")
    return tuple(data)

"""Tokens and their ids.

0 padding    1 unknown    2 begin    3 end    4, 5, ... the tokens
then, for models that copy, the first different unseen tokens of the source, in order
"""

from collections.abc import Container, Iterable, Mapping, Sequence

PADDING = 0
UNKNOWN = 1
BEGIN = 2
"""The id of the token that begins a target sequence."""
END = 3
"""The id of the token that ends a target sequence."""
NUM_SPECIAL = 4
UNKNOWN_TEXT = "\N{REPLACEMENT CHARACTER}"


class Numbers(dict[str, int]):
    """Ids of tokens; the id of an unknown token is 1."""

    def __missing__(self, token: str) -> int:
        return UNKNOWN


def numbered(tokens: Iterable[str], first: int = NUM_SPECIAL) -> Numbers:
    """Give each token an id, from `first` on."""
    return Numbers((token, number) for number, token in enumerate(tokens, first))


def tokens_of(numbers: Iterable[int], tokens: Sequence[str]) -> list[str]:
    """Convert ids to tokens, up to the first end token. Padding and begin tokens are skipped.

    Args:
        numbers: Ids, for example the output of a decoder.
        tokens: Tokens of the vocabulary, from id 4 on.

    Returns:
        The tokens; an unknown token is U+FFFD.
    """
    found: list[str] = []
    for number in numbers:
        if number == END:
            break
        if number >= NUM_SPECIAL:
            found.append(tokens[number - NUM_SPECIAL])
        elif number == UNKNOWN:
            found.append(UNKNOWN_TEXT)
    return found


def unseen_slots(
    source: Sequence[str], known: Container[str], first: int, num_slots: int
) -> dict[str, int]:
    """Give an id to each of the first different unseen tokens of a source.

    Args:
        source: Tokens of the source.
        known: Tokens of the vocabulary.
        first: Id of the first slot.
        num_slots: Number of slots.

    Returns:
        The id of each of these tokens.

    Examples:
        >>> unseen_slots("axbyx", {"a", "b"}, first=6, num_slots=2)
        {'x': 6, 'y': 7}
    """
    unseen = dict.fromkeys(token for token in source if token not in known)
    return dict(zip(unseen, range(first, first + num_slots), strict=False))


def with_slots(
    numbers: Sequence[int], tokens: Sequence[str], slots: Mapping[str, int]
) -> list[int]:
    """Replace the ids of unseen tokens by their slots."""
    return [slots.get(token, number) for token, number in zip(tokens, numbers, strict=True)]


def tokens_with_slots(
    numbers: Iterable[int], tokens: Sequence[str], slots: Mapping[str, int]
) -> list[str]:
    """Convert ids to tokens as `tokens_of`; a slot gives its token, and an empty slot is unknown."""
    names = {number: token for token, number in slots.items()}
    size = NUM_SPECIAL + len(tokens)
    found: list[str] = []
    for number in numbers:
        if number == END:
            break
        if number in names:
            found.append(names[number])
        else:
            found += tokens_of([UNKNOWN if number >= size else number], tokens)
    return found

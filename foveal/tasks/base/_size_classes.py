"""Batches in which an answer does not depend on the rest of the batch, bit for bit.

    sizes   8, 12, 16, 24, 32, 48, 64, 96, ...

A floating-point sum depends on the order of its terms, and the order depends on tensor shapes. Every input is therefore
padded to the next of these sizes, and only inputs of one size share a batch. Each size has room for at least one
padding position, because batches with and without padding run different code. With two or more rows, the number of rows
does not matter: see docs/decisions/0012.

Axes: B examples, S positions, C positions of a size class.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from ...data import Example
from ...masking import mask_from_lengths

_LEAST = 8
# Positions in a prediction batch: its states fit into the memory of any machine.
_MOST_PLACES = 20_000

Answer = TypeVar("Answer")


class Settled(NamedTuple):
    """Tokens and their mask, padded to their size class."""

    tokens: Int[Tensor, "B *C"]
    mask: Bool[Tensor, "B *C"]


def size_class(size: int) -> int:
    """Return the size to which a text of `size` tokens is padded for prediction: 8, 12, 16, 24, 32, ...

    An answer depends on the other texts of its batch in the last bits, unless every text is padded to the same size in
    every batch. All examples that a search is given have one size class.

    Args:
        size: Number of tokens.

    Returns:
        The smallest size class above `size`.

    Examples:
        >>> tuple(map(size_class, (0, 7, 8, 11, 12, 15, 16, 23, 24, 100)))
        (8, 8, 12, 12, 16, 16, 24, 24, 32, 128)
    """
    places = _LEAST
    while places <= size:
        is_power = places & (places - 1) == 0
        places = places * 3 // 2 if is_power else places * 4 // 3
    return places


def settled(tokens: Int[Tensor, "B S *rest"], mask: Bool[Tensor, "B S"]) -> Settled:
    """Move the real tokens of examples of one size class to the front and pad to its size. A token may be several
    numbers, along one more axis.
    """
    lengths = mask.sum(-1)
    places = mask_from_lengths(lengths, size_class(int(lengths.max())))
    after = tokens.new_zeros(*places.shape, *tokens.shape[2:])
    after[places] = tokens[mask]
    return Settled(after, places)


def settled_rows(words: Int[Tensor, "B n w"], mask: Bool[Tensor, "B n w"]) -> Settled:
    """Pad the words of sentences to the size class of each axis."""
    more = [size_class(size) - size for size in words.shape[:0:-1]]
    padding = (0, more[0], 0, more[1])
    return Settled(pad(words, padding), pad(mask, padding))


def batched(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the indices of examples in batches of one size class, at most `most` in each, the largest first.

    Args:
        sizes: Number of tokens of each example.
        most: Maximum number of examples in a batch.

    Yields:
        The indices of the examples of one batch.

    Examples:
        >>> list(batched([3, 20, 4, 21, 5], most=2))
        [[1, 3], [0, 2], [4]]
    """
    order = sorted(range(len(sizes)), key=lambda n: -size_class(sizes[n]))
    start = 0
    while start < len(order):
        places = size_class(sizes[order[start]])
        room = max(1, min(most, _MOST_PLACES // places))
        rows = [n for n in order[start : start + room] if size_class(sizes[n]) == places]
        yield rows
        start += len(rows)


def answers_of(
    ask: Callable[[Sequence[Example]], list[Answer]], examples: Sequence[Example], least: int
) -> list[Answer]:
    """Answer one batch. The last example is repeated up to `least` rows, because products of fewer rows use other
    kernels.
    """
    more = [examples[-1]] * (least - len(examples))
    return ask([*examples, *more])[: len(examples)]


def by_class(
    ask: Callable[[Sequence[Example]], list[Answer]],
    examples: Sequence[Example],
    class_of: Callable[[Example], tuple[int, ...]],
    least: int,
) -> list[Answer]:
    """Answer examples with several axes; examples that have the same class in all axes share a batch."""
    groups = dict[tuple[int, ...], list[int]]()
    for number, example in enumerate(examples):
        groups.setdefault(class_of(example), []).append(number)
    found = dict[int, Answer]()
    for numbers in groups.values():
        answers = answers_of(ask, [examples[number] for number in numbers], least)
        found.update(zip(numbers, answers, strict=True))
    return [found[number] for number in range(len(examples))]

"""Size classes, to which sources are padded, and the lengths of outputs.

    sizes   8, 12, 16, 24, 32, 48, 64, 96, ...

A floating-point sum depends on the order of its terms, and the order depends on the shapes of tensors. A source that is
padded to the same size in every batch therefore has the same answer in every batch, bit for bit.
"""

import math
from collections.abc import Iterator, Sequence

_LEAST = 8
# Positions in a prediction batch: its states fit into the memory of any machine.
_MOST_PLACES = 20_000

_STEP = 32  # pixels


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


def grouped(shapes: Sequence[tuple[int, ...]], most: int) -> Iterator[list[int]]:
    """Yield the indices of inputs in batches of one padded shape, at most `most` in each, the largest first.

    Args:
        shapes: Padded shape of each input.
        most: Maximum number of inputs in a batch.

    Yields:
        The indices of the inputs of one batch.

    Examples:
        >>> list(grouped([(8,), (24,), (8,), (24,), (8,)], most=2))
        [[1, 3], [0, 2], [4]]
    """
    groups = dict[tuple[int, ...], list[int]]()
    for number, shape in enumerate(shapes):
        groups.setdefault(shape, []).append(number)
    for shape in sorted(groups, key=math.prod, reverse=True):
        rows, room = groups[shape], max(1, min(most, _MOST_PLACES // math.prod(shape)))
        for start in range(0, len(rows), room):
            yield rows[start : start + room]


def padded_pixels(size: int, cell: int) -> int:
    """Return the height or width to which an image is padded: a multiple of 32 pixels and of the cells of its grid, with
    room for one more cell.

    Args:
        size: Height or width in pixels.
        cell: Height or width of a cell.

    Returns:
        The padded size.

    Examples:
        >>> padded_pixels(30, 4), padded_pixels(28, 4)
        (64, 32)
    """
    step = math.lcm(_STEP, cell)
    return -(-(size + cell) // step) * step


def length_limit(source: int, ratio: float, slack: float) -> int:
    """Return the maximum length of an output, including the end token: a fifth more than in the training set.

    Args:
        source: Number of tokens of the source.
        ratio: Tokens of a target for each token of the source.
        slack: Tokens of a target in addition.

    Returns:
        The number of tokens.
    """
    return int(1.2 * (ratio * source + slack)) + 2

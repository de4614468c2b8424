"""Batches in which an answer does not depend on the rest of the batch, bit for bit.

    sizes   8, 12, 16, 24, 32, 48, 64, 96, ...

A floating-point sum depends on the order of its terms, and the order depends on tensor shapes. Every input is therefore
padded to the next of these sizes, and only inputs of one size share a batch. Each size has room for at least one
padding position, because batches with and without padding run different code. With two or more rows, the number of rows
does not matter: see docs/decisions/0012.

Axes: B examples, S positions, C positions of a size class.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from ...data import Example
from ...masking import mask_from_lengths
from ...runtime._sizes import batched as batched, size_class as size_class

Answer = TypeVar("Answer")


class Settled(NamedTuple):
    """Tokens and their mask, padded to their size class."""

    tokens: Int[Tensor, "B *C"]
    mask: Bool[Tensor, "B *C"]


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

"""Enumerations of the structures of one item, part by part, independent of the library.

An enumeration takes the masks of an item (True on real entries) and yields its structures.

    value   the representation of the structure in the library
    parts   the entries of the potentials whose sum is the score: (which potential, index)
    marks   the entries of the marginals that it counts for; None: its parts in the first potential
"""

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product
from typing import NamedTuple

import torch
from torch import Tensor

Part = tuple[int, tuple[int, ...]]


class Structure(NamedTuple):
    value: Tensor
    parts: list[Part]
    marks: list[tuple[int, ...]] | None = None


def real(mask: Tensor) -> list[int]:
    return mask.nonzero().flatten().tolist()


def chosen(size: int, items: tuple[int, ...]) -> Tensor:
    value = torch.zeros(size, dtype=torch.bool)
    value[list(items)] = True
    return value


def marked(shape: tuple[int, ...], marks: list[tuple[int, ...]]) -> Tensor:
    value = torch.zeros(shape, dtype=torch.bool)
    for mark in marks:
        value[mark] = True
    return value


def choices(mask: Tensor) -> Iterator[Structure]:
    for i in real(mask):
        yield Structure(torch.tensor(i), [(0, (i,))])


def subsets(mask: Tensor, k: int | None = None) -> Iterator[Structure]:
    items = real(mask)
    for size in range(len(items) + 1) if k is None else [k]:
        for some in combinations(items, size):
            yield Structure(chosen(len(mask), some), [(0, (i,)) for i in some])


def labelings(
    mask: Tensor, num_states: int, *, shared: bool, bounded: bool = False
) -> Iterator[Structure]:
    """Enumerate labelings. If `bounded`, potentials 2 and 3 score the first and the last label."""
    places = real(mask)
    for labels in product(range(num_states), repeat=len(places)):
        value, parts = torch.full_like(mask, -1, dtype=torch.long), list[Part]()
        for n, (t, label) in enumerate(zip(places, labels, strict=True)):
            value[t] = label
            parts.append((0, (t, label)))
            if n:
                step = (labels[n - 1], label)
                parts.append((1, step if shared else (t - 1, *step)))
        if bounded and labels:
            parts += [(2, labels[:1]), (3, labels[-1:])]
        yield Structure(value, parts)


def segmentations(mask: Tensor, longest: int, num_labels: int) -> Iterator[Structure]:
    places = real(mask)

    def cut(start: int, before: int | None) -> Iterator[tuple[list[tuple[int, int]], list[Part]]]:
        if start == len(places):
            yield [], []
            return
        first = places[start]
        for d, label in product(range(min(longest, len(places) - start)), range(num_labels)):
            own: list[Part] = [(0, (first, d, label))]
            if before is not None:
                own.append((1, (first - 1, before, label)))
            for labels, parts in cut(start + d + 1, label):
                yield [(first, label), *labels], own + parts

    for labels, parts in cut(0, None):
        value = torch.full_like(mask, -1, dtype=torch.long)
        for t, label in labels:
            value[t] = label
        yield Structure(value, parts)


def paths(source: Tensor, target: Tensor) -> Iterator[Structure]:
    """Enumerate moves from the first node of a grid to the last: 0 match, 1 skip source, 2 skip
    target.
    """
    rows = [0, *(i + 1 for i in real(source))]
    columns = [0, *(j + 1 for j in real(target))]

    def walk(i: int, j: int) -> Iterator[list[tuple[int, ...]]]:
        if i == j == 0:
            yield []
        for move, (down, right) in enumerate(((1, 1), (1, 0), (0, 1))):
            if i >= down and j >= right:
                for way in walk(i - down, j - right):
                    yield [*way, (rows[i], columns[j], move)]

    for way in walk(len(rows) - 1, len(columns) - 1):
        shape = (len(source) + 1, len(target) + 1, 3)
        yield Structure(marked(shape, way), [(0, move) for move in way])


def monotone_choices(source: Tensor, target: Tensor) -> Iterator[Structure]:
    """Assign a source item to each target item, never an earlier one than the item before it."""
    items, wanted = real(source), real(target)
    for given in combinations_with_replacement(items, len(wanted)):
        way, j = list[tuple[int, ...]](), 0
        # Down the rows; along a row to the right for each target item that is assigned to it.
        for i in items:
            way.append((i + 1, j, 1))
            for item, column in zip(given, wanted, strict=True):
                if item == i:
                    j = column + 1
                    way.append((i + 1, j, 2))
        parts: list[Part] = [(0, pair) for pair in zip(given, wanted, strict=True)]
        yield Structure(marked((len(source) + 1, len(target) + 1, 3), way), parts, way)


def spellings(frames: Tensor, labels: Tensor, targets: list[int]) -> Iterator[Structure]:
    """CTC: the frames pass through blank, label, blank, ..., label, blank; 0 is the blank."""
    symbol = [0, *(s for n in real(labels) for s in (targets[n], 0))]  # real labels come first
    num_states, places = len(symbol), real(frames)
    # A path may skip a blank, except between two equal labels.
    silent = [
        symbol[s] == 0 and not (0 < s < num_states - 1 and symbol[s - 1] == symbol[s + 1])
        for s in range(num_states)
    ]
    for counts in product(range(len(places) + 1), repeat=num_states):
        if sum(counts) != len(places) or any(
            not count and not silent[s] for s, count in enumerate(counts)
        ):
            continue
        way, parts, row = list[tuple[int, ...]](), list[Part](), 0
        emitting = [s for s, count in enumerate(counts) for _ in range(count)]
        for frame, s in zip(places, emitting, strict=True):
            parts.append((0, (frame, symbol[s])))
        for s, count in enumerate(counts):
            for n in range(count):
                row = places[sum(counts[:s]) + n] + 1
                last = n == count - 1 and not silent[s]
                way.append((row, s + 1 if last else s, 0 if last else 1))
            if silent[s]:
                way.append((row, s + 1, 2))
        yield Structure(marked((len(frames) + 1, 2 * len(labels) + 2, 3), way), parts, way)


def dependency_trees(mask: Tensor, *, single_root: bool, projective: bool) -> Iterator[Structure]:
    words = [i + 1 for i in real(mask)]
    for chosen_heads in product([0, *words], repeat=len(words)):
        heads = dict(zip(words, chosen_heads, strict=True))
        if single_root and words and chosen_heads.count(0) != 1:
            continue
        above = {word: _above(word, heads) for word in words}
        if any(0 not in ancestors for ancestors in above.values()):
            continue
        if projective and any(
            min(head, word) < between < max(head, word) and head not in above[between]
            for word, head in heads.items()
            for between in words
        ):
            continue
        value = torch.full_like(mask, -1, dtype=torch.long)
        for word, head in heads.items():
            value[word - 1] = head
        yield Structure(value, [(0, (head, word)) for word, head in heads.items()])


def _above(word: int, heads: dict[int, int]) -> list[int]:
    """Return the ancestors of a word, the root last; the root is missing if they form a cycle."""
    found = [heads[word]]
    while found[-1] != 0 and len(found) <= len(heads):
        found.append(heads[found[-1]])
    return found


def bracketings(mask: Tensor, num_labels: int | None = None) -> Iterator[Structure]:
    words, shape = real(mask), (len(mask), len(mask))
    shape = shape if num_labels is None else (*shape, num_labels)

    def spans(i: int, j: int) -> Iterator[list[tuple[int, ...]]]:
        for label in range(num_labels or 1):
            own = (words[i], words[j]) if num_labels is None else (words[i], words[j], label)
            if i == j:
                yield [own]
            for k in range(i, j):
                for left, right in product(list(spans(i, k)), list(spans(k + 1, j))):
                    yield [own, *left, *right]

    for found in spans(0, len(words) - 1) if words else [[]]:
        yield Structure(marked(shape, found), [(0, span) for span in found])

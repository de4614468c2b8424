"""Binary trees over texts: from brackets, balanced, or a chain.

A tree is a list of merges. Each merges the two topmost constituents of a stack, as a shift-reduce parser does:

    ( ( a film ) ( with charm ) )       brackets
    ( a film with ) charm               a group of three merges from the left: ( ( a film ) with )
    a b c d e   balanced                ( ( ( a b ) c ) ( d e ) )      depth: log2 of the number of words, rounded up
    a b c d e   chain                   ( ( ( ( a b ) c ) d ) e )      depth: the number of words minus 1

Every sequence of tokens is a tree: a bracket that is not closed ends with the text, a bracket that was not opened is
ignored, and constituents that remain at the end merge from the left.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

# Ids of the brackets. They are the begin and end tokens of a vocabulary, which do not occur inside a text.
OPEN, CLOSE = 2, 3

Tree: TypeAlias = Literal["brackets", "balanced", "chain"]


class Merge(NamedTuple):
    """A constituent of two parts. Nodes are numbered: first the tokens, then the merges in their order."""

    left: int
    right: int


class Bracketing(NamedTuple):
    """A tree over tokens."""

    merges: Sequence[Merge]
    tops: Sequence[
        int | None
    ]  # for each token, the topmost node after it; None at an opening bracket
    root: int | None  # None if the text has no word


def bracketing(tokens: Sequence[int], tree: Tree) -> Bracketing:
    """Return the tree over the tokens of a text.

    Args:
        tokens: Token ids. Only `brackets` treats the ids of brackets differently from words.
        tree: Where the tree comes from.

    Returns:
        The merges, the topmost node after each token, and the root.

    Examples:
        >>> bracketing([2, 7, 8, 3, 9], "brackets")
        Bracketing(merges=[Merge(left=1, right=2), Merge(left=5, right=4)], tops=[None, 1, 2, 5, 6], root=6)
        >>> [len(bracketing(range(4, 12), tree).merges) for tree in ("balanced", "chain")]
        [7, 7]
    """
    if tree == "brackets":
        return _from_brackets(tokens)
    splits = _balanced if tree == "balanced" else _chained
    merges, tops = list[Merge](), list[int | None](range(len(tokens)))
    if not tokens:
        return Bracketing(merges, tops, None)
    stack = list[int]()
    for position, num_merges in enumerate(splits(len(tokens))):
        stack.append(position)
        for _ in range(num_merges):
            _merge(stack, merges, len(tokens))
        tops[position] = stack[-1]
    return Bracketing(merges, tops, stack[0])


def _from_brackets(tokens: Sequence[int]) -> Bracketing:
    merges, tops = list[Merge](), list[int | None]()
    stack, opened = list[int](), list[int]()
    for position, token in enumerate(tokens):
        if token == OPEN:
            opened.append(len(stack))
        elif token != CLOSE:
            stack.append(position)
        elif opened:
            _group(stack, opened.pop(), merges, len(tokens))
        tops.append(stack[-1] if stack and token != OPEN else None)
    while opened:
        _group(stack, opened.pop(), merges, len(tokens))
    _group(stack, 0, merges, len(tokens))
    if stack:
        tops[-1] = stack[0]  # merges at the end of the text belong to its last token
    return Bracketing(merges, tops, stack[0] if stack else None)


def _group(stack: list[int], start: int, merges: list[Merge], num_tokens: int) -> None:
    """Merge the constituents from `start` on, from the left."""
    while len(stack) > start + 1:
        merges.append(Merge(stack[start], stack[start + 1]))
        stack[start : start + 2] = [num_tokens + len(merges) - 1]


def _merge(stack: list[int], merges: list[Merge], num_tokens: int) -> None:
    right, left = stack.pop(), stack.pop()
    merges.append(Merge(left, right))
    stack.append(num_tokens + len(merges) - 1)


def _chained(num_words: int) -> Iterator[int]:
    """Yield the number of merges after each word of a chain."""
    for position in range(num_words):
        yield int(position > 0)


def _balanced(num_words: int) -> Iterator[int]:
    """Yield the number of merges after each word of a balanced tree: the left part has at most one more word."""
    if num_words == 1:
        yield 0
        return
    half = (num_words + 1) // 2
    yield from _balanced(half)
    *others, last = _balanced(num_words - half)
    yield from others
    yield last + 1

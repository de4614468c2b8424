"""Check that the heads of a sentence form a dependency tree."""

from collections.abc import Sequence

from ..errors import DataError


def check_tree(heads: Sequence[int], *, single_root: bool) -> None:
    """Raise `DataError` unless the heads, with 0 for the root, form a tree."""
    size, num_roots = len(heads), heads.count(0)
    problem = None
    if any(head > size for head in heads):
        problem = f"the head {max(heads)} is not a word of the sentence, which has {size} words"
    elif size and single_root and num_roots != 1:
        problem = f"{num_roots} words are attached to the root, expected one"
    elif any(_is_on_cycle(heads, word) for word in range(1, size + 1)):
        problem = "the heads have a cycle, expected a tree"
    if problem is not None:
        raise DataError(
            f"{problem}. Correct the heads, which count words from 1, with 0 for the root"
            f"{', or set model.single_root=false' if num_roots > 1 else ''}."
        )


def _is_on_cycle(heads: Sequence[int], word: int) -> bool:
    """Return True if following the heads from a word never reaches the root."""
    for _ in heads:
        word = heads[word - 1]
        if word == 0:
            return False
    return True

"""Count training examples without reading all of a large corpus as text."""

from collections.abc import Iterable
from itertools import islice

from ..data import Example
from ..data._lines import num_lines
from ..data._source import FileSource

_MOST_READ = 100_000  # examples that are read to count them
_MOST_COUNTED = 1_000_000  # more examples do not change the recommendation


def count_examples(examples: Iterable[Example]) -> int:
    """Count the examples, up to a million. In large files with one example per line, count the lines.

    Args:
        examples: Training examples; an iterable that can be read several times.

    Returns:
        The number of examples. A header and empty lines of a large file count too.
    """
    number = sum(1 for _ in islice(examples, _MOST_READ))
    if number < _MOST_READ:
        return number
    if not isinstance(examples, FileSource) or not examples.is_by_line:
        return sum(1 for _ in islice(examples, _MOST_COUNTED))
    number = 0
    for file, *_ in examples.files():
        number += num_lines(file, _MOST_COUNTED - number)
        if number >= _MOST_COUNTED:
            return _MOST_COUNTED
    return number

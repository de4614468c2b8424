"""Summaries: several references for one source, ROUGE, and the first sentence as a baseline."""

import re
from collections.abc import Sequence

from ..data import Example
from ..data._inputs import Input
from ..metrics import Statistics, rouge

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def by_source(examples: Sequence[Example]) -> list[list[Example]]:
    """Group the examples of each source, in the order of the first; their targets are several references.

    Args:
        examples: Examples; a source with several references occurs several times.

    Returns:
        The examples of each source.
    """
    groups = dict[Input, list[Example]]()
    for example in examples:
        groups.setdefault(example.source, []).append(example)
    return list(groups.values())


def first_sentence(text: str) -> str:
    """Return the first line of a text with several lines, otherwise the text up to the first end of a sentence.

    Args:
        text: Text with one sentence on each line, or with sentences that end in `.`, `!` or `?` before a space.

    Returns:
        The first sentence.

    Examples:
        >>> first_sentence("It rains . We stay .")
        'It rains .'
    """
    lines = text.strip().splitlines()
    if len(lines) != 1:
        return lines[0] if lines else ""
    return _SENTENCE_END.split(lines[0], maxsplit=1)[0]


def rouges(
    references: Sequence[str | Sequence[str]], outputs: Sequence[str]
) -> Sequence[Statistics]:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L."""
    return tuple(rouge(references, outputs, overlap=overlap) for overlap in ("1", "2", "L"))

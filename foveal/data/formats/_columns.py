"""Find the roles of the columns of a table, from the names in its header or from the content of its cells.

1. With a header: the first known name of a text is the source, the first known name of a target is the target. In
   a comma-separated file, columns without a known name take the remaining roles, in the order of columns; columns
   that number the rows are skipped.
2. Without a header: two texts and a label, a label and a text, or a text with its target, features and
   alignments, inferred from the content of the cells.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from .._example import quoted
from ._tables import Column

# In a file of two columns, the first column contains labels if each label occurs at least this often, if the second
# column rarely repeats and if it is this many times longer. Dictionaries and translations repeat a source only a few
# times, and inflected forms are about as long as their lemma.
MIN_PER_LABEL = 20
TIMES_AS_LONG = 3
_MOST_OF_ONE = 0.9  # fraction of pairs with one label; above it, the column is a note
SOURCES = (
    *("source", "src", "input", "text", "sentence", "word", "lemma", "body", "x"),
    *("first", "premise", "sentence1", "sentence_a", "text1", "question1"),
    *("tokens", "grapheme", "graphemes", "spelling", "question", "query", "prompt"),
    *("document", "review", "content"),
)
SECONDS = ("second", "hypothesis", "sentence2", "sentence_b", "text2", "question2")
TARGETS = (
    *("target", "tgt", "output", "label", "gold_label", "translation", "pronunciation", "form"),
    *("tags", "answer", "subject", "summary", "entailment_judgment", "y"),
    *("pron", "ipa", "phonemes", "phoneme", "transcription", "class", "category", "sentiment"),
)
FEATURES = ("features", "feats", "morph")
ALIGNMENTS = ("alignment", "alignments")
_KNOWN = frozenset((*SOURCES, *SECONDS, *TARGETS, *FEATURES, *ALIGNMENTS))
# Columns that number the rows; pandas writes its index without a name.
_NUMBERS = frozenset({"", "id", "idx", "index", "unnamed: 0", "uid", "guid"})
_IS_FEATURES = re.compile(r"[A-Z0-9][^\s;]*(;[^\s;]+)*").fullmatch
_IS_ALIGNMENT = re.compile(r"\d+-\d+( \d+-\d+)*").fullmatch
_IS_NAME = re.compile(r"[^\W\d][\w .:/()#-]{0,39}").fullmatch
_IS_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?(e[-+]?\d+)?", re.IGNORECASE).fullmatch
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
# The first line of a CSV file is a header if a column contains labels, each this often, and the first cell is not one.
_PER_LABEL = 4


class Columns(NamedTuple):
    """The columns of a table, and the reason for their roles."""

    roles: dict[str, Any]  # the column of source, target, second, features, alignment
    header: bool
    number: int  # number of columns in most rows
    is_even: bool  # True if nearly all rows have this number of columns
    reason: str


def find_columns(rows: Sequence[Sequence[str]], *, is_csv: bool = False) -> Columns:
    """Find the columns of a table from its first rows."""
    number, how_often = Counter(map(len, rows)).most_common(1)[0]
    whole = [row for row in rows if len(row) == number]
    is_even = number > 1 and how_often >= 0.9 * len(rows)
    if len(rows) > 1 and _is_header(rows[0], whole[1:], is_csv=is_csv):
        roles = named_roles(rows[0], guess=is_csv)
        reason = f"named in the first line: {in_words(roles)}{_unused(roles, rows[0])}"
        return Columns(roles, True, number, is_even, f"{_count(number)}, {reason}")
    if _has_labels_first(whole):
        roles = {"source": 1, "target": 0}
        reason = (
            f"{_count(number)}: label in the first ({len({row[0] for row in whole})} different in "
            f"{len(whole)} lines), text in the second; to change this, add a first line with the "
            f"column names source and target"
        )
        return Columns(roles, False, number, is_even, reason)
    roles = _as_pairs(whole) or _by_content(whole, number)
    if is_csv and number == 1:
        roles["target"] = None
    reason = f"{_count(number)}: {in_words(roles)}{_unused(roles, range(number))}"
    if is_csv:
        first = ", ".join(map(quoted, rows[0]))
        reason += f"; no header (if the names of the columns are {first}: --set train.header=true)"
    return Columns(roles, False, number, is_even, reason)


def named_roles(names: Sequence[str], *, guess: bool) -> dict[str, Column]:
    """Return the column of each role, by name, or by number if names repeat.

    Args:
        names: Names of the columns, in order.
        guess: Whether text and target may be in columns with unknown names.

    Returns:
        For each role, the name of its column, its number if names repeat, or None if no column fits.
    """
    numbers = {name.strip().lower(): n for n, name in reversed(list(enumerate(names)))}
    known = {
        "source": SOURCES,
        "target": TARGETS,
        "second": SECONDS,
        "features": FEATURES,
        "alignment": ALIGNMENTS,
    }
    found = {role: first_known(numbers, among) for role, among in known.items()}
    for role in ("source", "target") if guess else ():
        taken = {*_NUMBERS, *found.values()}
        free = sorted(numbers.keys() - taken, key=lambda name: numbers[name])
        found[role] = found[role] or next(iter(free), None)
    repeats = len(numbers) < len(names)
    return {
        role: None if name is None else numbers[name] if repeats else names[numbers[name]].strip()
        for role, name in found.items()
    }


def _is_header(first: Sequence[str], rest: Sequence[Sequence[str]], *, is_csv: bool) -> bool:
    """Return True if the first line contains column names: known names of a text and of a target. In a
    comma-separated file one known name is enough, or a column whose first cell differs from the others.
    """
    names = [cell.strip().lower() for cell in first]
    if first_known(names, SOURCES) and first_known(names, TARGETS):
        return True
    filled = [name for name in names if name]
    are_names = all(map(_IS_NAME, filled)) and len(set(names)) == len(names)
    if not is_csv or not filled or not are_names:
        return False
    columns = zip(*rest, strict=True) if rest and len(rest[0]) == len(first) else ()
    return not _KNOWN.isdisjoint(names) or any(
        _stands_out(name, [cell.strip() for cell in cells])
        for name, cells in zip(names, columns, strict=False)
    )


def _stands_out(name: str, cells: Sequence[str]) -> bool:
    """Return True if a cell differs from the cells below it: no number above numbers, one word above texts, or a word
    above labels that is not a label.
    """
    if _IS_NUMBER(name) or not name:
        return False
    return (
        all(map(_IS_NUMBER, cells))
        or (" " not in name and sum(" " in cell for cell in cells) > 0.9 * len(cells))
        or (
            name not in {cell.lower() for cell in cells}
            and _PER_LABEL * len(set(cells)) <= len(cells)
        )
    )


def in_words(roles: Mapping[str, Column]) -> str:
    """Describe the roles and their columns, as in "text in 'word', target in 'pron'"."""
    words = {"source": "text", "second": "second text"}
    order = ("source", "second", "target", "features", "alignment")
    return ", ".join(
        f"{words.get(role, role)} in {_place(roles[role])}"
        for role in order
        if roles.get(role) is not None
    )


def _place(column: Column) -> str:
    return f"the {_ordinal(column)}" if isinstance(column, int) else quoted(str(column))


def _count(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"


def _unused(roles: Mapping[str, Column], columns: Sequence[str | int]) -> str:
    """Describe the unused columns, and how to read one of them."""
    named = any(isinstance(column, str) for column in roles.values())
    all_of = columns if named else range(len(columns))
    unused: list[str | int] = [
        column.strip() if isinstance(column, str) else column
        for column in all_of
        if (column.strip() if isinstance(column, str) else column) not in roles.values()
    ]
    if not unused or len(columns) < 3:
        return ""
    places = " and ".join(map(_place, unused))
    counted = "" if named else "; columns count from 0"
    return f"; ignored: {places} (to predict it instead: --set train.target={unused[0]}{counted})"


def _has_labels_first(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if each line contains a label and a text, rather than a text and its target."""
    if not rows or len(rows[0]) != 2:
        return False
    labels, texts = ([row[column].strip() for row in rows] for column in (0, 1))
    return (
        _are_labels_of(labels, texts)
        and not any(map(_IS_ALIGNMENT, texts))
        and not _are_features(texts)
    )


def _are_labels_of(labels: Sequence[str], texts: Sequence[str]) -> bool:
    """Return True if the labels are few and short compared with the texts, which rarely repeat."""
    return (
        len(set(labels)) * MIN_PER_LABEL <= len(labels)
        and 2 * len(set(texts)) > len(texts)
        and sum(map(len, texts)) >= TIMES_AS_LONG * sum(map(len, labels)) > 0
    )


def _as_pairs(rows: Sequence[Sequence[str]]) -> dict[str, Any] | None:
    """Return the roles if each line contains two texts and a label, which is the last or first column; otherwise
    None. The two texts are similar. This is also true of a text, its translation and a note, but notes are rarely
    equal, or nearly always.
    """
    if not rows or len(rows[0]) != 3:
        return None
    columns = [[row[column].strip() for row in rows] for column in range(3)]
    for target, source, second in ((2, 0, 1), (0, 1, 2)):
        both = [
            f"{first}\t{other}"
            for first, other in zip(columns[source], columns[second], strict=True)
        ]
        spaced = all(most(columns[column], lambda cell: " " in cell) for column in (source, second))
        commonest = max(Counter(columns[target]).values())
        is_told = commonest <= _MOST_OF_ONE * len(rows)
        if spaced and is_told and _are_labels_of(columns[target], both):
            return {"source": source, "second": second, "target": target}
    return None


def _by_content(rows: Sequence[Sequence[str]], num_columns: int) -> dict[str, Any]:
    columns = list(zip(*rows, strict=True))
    features = next((n for n in range(1, num_columns) if _are_features(columns[n])), None)
    rest = [n for n in range(1, num_columns) if n != features]
    alignment = next((n for n in rest[1:] if all(map(_IS_ALIGNMENT, columns[n]))), None)
    # Files of test inputs contain only a lemma and its features.
    target = rest[0] if rest else (None if features is not None else 1)
    return {"source": 0, "target": target, "features": features, "alignment": alignment}


def _are_features(cells: Sequence[str]) -> bool:
    """Return True for cells such as V;IND;PST: without spaces, most with a semicolon."""
    return all(map(_IS_FEATURES, cells)) and most(cells, lambda cell: ";" in cell)


def most(items: Sequence[str], holds: Callable[[str], Any]) -> bool:
    """Return True if a condition holds for more than half of the items."""
    return sum(map(bool, map(holds, items))) > len(items) / 2


def first_known(known: Collection[str], names: Sequence[str]) -> str | None:
    """Return the first known name, or None."""
    return next((name for name in names if name in known), None)


def _ordinal(column: int) -> str:
    return _ORDINALS[column] if column < len(_ORDINALS) else f"column {column + 1}"

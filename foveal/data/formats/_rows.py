"""Convert rows in memory to examples: pairs, mappings, examples, a pandas frame or a Hugging Face dataset.

    ("cat", "k a t")                      a pair: source and target
    {"text": "good film", "label": 1}     a mapping: columns have names, as in a CSV file
    Example("cat", "k a t")

Neither library is imported. An object with `iterrows` and `to_dict` is a frame; a dataset is iterated. If a dataset
has `features` with label names, these names replace the numbers of the labels.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ...errors import DataError
from .._example import Example, data_error, quoted
from .._inputs import AbstractInput, TextPair
from ._columns import in_words, named_roles
from ._formats import value_text
from ._tables import ROLES

_GIVE = "Pass pairs (source, target), dicts, Examples, a pandas frame or a Hugging Face dataset"


class Rows(NamedTuple):
    """The examples from the rows, and a description of the columns that were read."""

    examples: tuple[Example, ...]
    reason: str


@runtime_checkable
class Frame(Protocol):
    """The methods that a pandas frame has and a dataset does not."""

    def iterrows(self) -> Any:
        """Iterate over the rows."""
        ...

    def to_dict(self, orient: Any) -> Any:
        """Return all rows as dicts, with orient="records"."""
        ...


def read_rows(rows: Any, roles: Mapping[str, str | None] | None = None) -> Rows:
    """Read rows as examples.

    Args:
        rows: Pairs, mappings or examples; a pandas frame; a Hugging Face dataset.
        roles: The column of source, target, second, features or alignment, if it differs from the column that its
            name suggests.

    Returns:
        The examples, and a description of the columns that were read.

    Raises:
        DataError: A row has another type, or lacks a column or a value.

    Examples:
        >>> read_rows([{"word": "cat", "pron": "k a t"}]).examples[0].target
        'k a t'
    """
    if isinstance(rows, Mapping):
        names = ", ".join(map(quoted, list(map(str, rows))[:5]))
        raise DataError(
            f"expected rows, got a dict with {names}. {_GIVE}; for a dict of datasets, pass one of "
            f"them: data['train']."
        )
    labels = _labels_of(rows)
    records = rows.to_dict("records") if isinstance(rows, Frame) else rows
    if not isinstance(records, Iterable):
        raise DataError(f"expected rows, got {type(rows).__name__}. {_GIVE}.")
    examples, used = list[Example](), dict[str, str | None]()
    for number, row in enumerate(records, start=1):
        if isinstance(row, Mapping):
            used = used or _roles_in(row, roles or {})
            examples.append(_from_mapping(row, used, labels, f"row {number}"))
        else:
            examples.append(_from_other(row, f"row {number}"))
    if not examples:
        raise DataError(f"expected some hundreds of rows, got none. {_GIVE}.")
    reason = f": {in_words(used)}" if used else ": sources and targets"
    return Rows(tuple(examples), f"{len(examples):,} rows{reason}")


def _labels_of(rows: Any) -> dict[str, list[str]]:
    """Return the label names of each column of a Hugging Face dataset that has them."""
    features = getattr(rows, "features", None)
    if not isinstance(features, Mapping):
        return {}
    inner = {name: getattr(feature, "feature", feature) for name, feature in features.items()}
    named = {name: getattr(feature, "names", None) for name, feature in inner.items()}
    return {name: list(names) for name, names in named.items() if names}


def _roles_in(row: Mapping[str, Any], given: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the column name of each role; given names override inferred names."""
    names = list(row)
    others = [name for name in names if name not in given.values()]
    found = {
        role: name if isinstance(name, str) else None
        for role, name in named_roles(others, guess=True).items()
    }
    roles = {**found, **given}
    if roles["source"] is None:
        raise DataError(f"row 1: found no text column among {_listed(names)}. {_GIVE}.")
    return {role: roles[role] for role in ROLES}


def _from_mapping(
    row: Mapping[str, Any],
    roles: Mapping[str, str | None],
    labels: Mapping[str, list[str]],
    where: str,
) -> Example:
    texts = {
        role: _cell(row, name, labels.get(name), where)
        for role, name in roles.items()
        if name is not None
    }
    source = texts["source"]
    return Example(
        TextPair(source, texts["second"]) if "second" in texts else source,
        texts.get("target"),
        texts.get("features", ""),
        texts.get("alignment", ""),
    )


def _cell(row: Mapping[str, Any], name: str, labels: list[str] | None, where: str) -> str:
    if name not in row:
        raise data_error(
            where,
            f"no column {quoted(name)}, got {_listed(row)}",
            "Use the same columns in all rows, or select others: train__source=..., train__target=...",
        )
    value = row[name]
    return _text(_named(value, labels, where) if labels else value, quoted(name), where)


def _named(value: Any, labels: list[str], where: str) -> Any:
    """Return the name of a label, or of each label of a list."""
    if isinstance(value, list | tuple):
        return [_named(one, labels, where) for one in value]
    if not isinstance(value, int):
        return value
    if not 0 <= value < len(labels):
        raise data_error(
            where,
            f"label {value}, expected 0 to {len(labels) - 1}",
            "Remove rows without a label",
        )
    return labels[value]


def _from_other(row: Any, where: str) -> Example:
    if isinstance(row, Example):
        return row
    if not isinstance(row, list | tuple) or len(row) not in (1, 2):
        raise data_error(
            where,
            f"expected a pair (source, target), a dict or an Example, got {quoted(repr(row))}",
            _GIVE,
        )
    is_typed = isinstance(row[0], AbstractInput)
    source = row[0] if is_typed else _text(row[0], "the source", where)
    has_target = len(row) == 2 and row[1] is not None
    return Example(source, _text(row[1], "the target", where) if has_target else None)


def _text(value: Any, name: str, where: str) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    is_missing = isinstance(value, float) and math.isnan(value)
    text = None if is_missing else value_text(value)
    if text is None:
        raise data_error(
            where,
            f"{name} must be text, a number or a list of texts, got {quoted(repr(value))}",
            "Fill the cell or remove the row (pandas: frame.dropna())",
        )
    return text


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, map(str, list(names)[:12])))

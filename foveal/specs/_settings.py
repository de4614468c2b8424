"""A spec as a list of settings, and functions that replace one setting from text.

encoder.num_layers        a path: the fields from the root to a value
decoder.attention         the path of a choice between specs; its value is the chosen kind
stages.0.size             items of a tuple of specs are numbered
"""

import dataclasses
import difflib
import json
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ..errors import SpecError
from ._annotations import (
    advice,
    choices_among,
    either,
    in_words,
    items_of,
    join,
    members_of,
    specs_among,
    tuple_among,
    unfit,
)
from ._fields import NO_BOUNDS, Field, fields_of, kind_of
from ._reading import made, parse_json, read


class Setting(NamedTuple):
    """One value of a spec: its path, its value, its description and the accepted values."""

    path: str
    value: Any  # for a choice between specs: the kind of the chosen spec
    about: str
    expected: str

    @property
    def text(self) -> str:
        """The value in the form that `with_setting` parses."""
        if self.value is None or isinstance(self.value, bool):
            return str(self.value).lower()
        return self.value if isinstance(self.value, str) else json.dumps(self.value)


def settings(spec: Any) -> tuple[Setting, ...]:
    """Return every value of a spec, in the order of its fields; a choice precedes the settings of the chosen spec.

    Args:
        spec: Spec to list, with the specs inside it.

    Returns:
        The settings with their paths, for example `model.encoder.dropout`.
    """
    return tuple(_walk(_root(spec), spec, ""))


def outside_specs(spec: Any) -> tuple[type, ...]:
    """Return the classes of a spec and of all nested specs that the annotations do not list. Pass them as `also` to
    `from_json` to read the spec again.
    """
    found = {
        type(value): None
        for field, value in _specs_within(_root(spec), spec)
        if type(value) not in specs_among(members_of(field.annotation))
    }
    return tuple({type(spec): None} | found)


def _specs_within(field: Field, value: Any) -> Iterator[tuple[Field, Any]]:
    """Yield every nested spec with its field."""
    if isinstance(value, tuple) and _holds_specs(value):
        for index, item in enumerate(value):
            yield from _specs_within(_item(field, value, index), item)
    elif dataclasses.is_dataclass(value):
        yield field, value
        for name, below in fields_of(type(value)).items():
            yield from _specs_within(below, getattr(value, name))


def with_setting(spec: Any, path: str, text: str, *, also: Sequence[type] = ()) -> Any:
    """Return the spec with one value replaced. The annotation of the field determines how the text is parsed.

    `none` is None, the kind selects a spec (with its defaults), and a tuple is written `1,2,3`; specs and tuples may
    also be given as JSON.

    Args:
        spec: Spec to change; it stays as it is.
        path: Path of the setting, for example `training.steps`.
        text: New value as text.
        also: User-defined spec classes whose kinds may be selected.

    Returns:
        The new spec.

    Raises:
        SpecError: There is no such setting, or the value does not fit.
    """
    known = settings(spec)
    if not any(s.path == path or s.path.startswith(f"{path}.") for s in known):
        raise SpecError(_unknown(path, known))
    return _replaced(_root(spec), spec, path.split("."), text, "", also)


def _root(spec: Any) -> Field:
    return Field("", type(spec), "", NO_BOUNDS, required=True)


def _walk(field: Field, value: Any, path: str) -> Iterator[Setting]:
    """Yield the settings at a path and below it."""
    here = Setting(path, value, field.about, in_words(field.annotation, field.bounds))
    if _holds_specs(value):
        for index, item in enumerate(value):
            yield from _walk(_item(field, value, index), item, join(path, str(index)))
    elif dataclasses.is_dataclass(value):
        if len(members_of(field.annotation)) > 1:
            yield here._replace(value=kind_of(type(value)))
        for name, below in fields_of(type(value)).items():
            if name != "kind":
                yield from _walk(below, getattr(value, name), join(path, name))
    else:
        yield here


def _holds_specs(value: Any) -> bool:
    return isinstance(value, tuple) and any(dataclasses.is_dataclass(item) for item in value)


def _item(field: Field, value: tuple[Any, ...], index: int) -> Field:
    """Return one item of a tuple as a separate field."""
    items = items_of(tuple_among(members_of(field.annotation)), len(value))
    assert items is not None
    return field._replace(name=str(index), annotation=items[index])


def _unknown(path: str, known: Sequence[Setting]) -> str:
    """Return the error message for an unknown path."""
    paths = [setting.path for setting in known]
    same_end = [other for other in paths if other.endswith(f".{path}")]
    near = same_end or difflib.get_close_matches(path, paths, cutoff=0.9)
    above = [setting for setting in known if path.startswith(f"{setting.path}.")]
    if above and not near:
        chosen = above[-1]
        return (
            f"{path}: unknown setting, because {chosen.path} is {chosen.text}; expected "
            f"{chosen.expected}. First set {chosen.path} to a value that has this setting."
        )
    if near:
        return f"{path}: unknown setting. Did you mean {either(near)}?"
    there = f"Settings: {', '.join(paths)}."
    return f"{path}: unknown setting. {advice(path, paths, there)}"


def _replaced(
    field: Field, value: Any, parts: Sequence[str], text: str, path: str, also: Sequence[type]
) -> Any:
    """Return the value with the setting at the end of an existing path parsed from text."""
    if not parts:
        return _from_text(field, value, text, path, also)
    name, rest = parts[0], parts[1:]
    if isinstance(value, tuple):
        index = int(name)
        item = _item(field, value, index)
        new = _replaced(item, value[index], rest, text, join(path, name), also)
        return (*value[:index], new, *value[index + 1 :])
    known = fields_of(type(value))
    new = _replaced(known[name], getattr(value, name), rest, text, join(path, name), also)
    return made(type(value), {other: getattr(value, other) for other in known} | {name: new}, path)


def _from_text(field: Field, value: Any, text: str, path: str, also: Sequence[type]) -> Any:
    """Parse a complete value from text."""
    members = members_of(field.annotation)
    specs = choices_among(members, also)
    if text.startswith(("{", "[")) and (specs or tuple_among(members)):
        return read(field.annotation, parse_json(text, path), path, field.bounds, also)
    for spec in specs if len(members) > 1 else ():
        if text == kind_of(spec):
            same = type(value) is spec
            return value if same else read(spec, {"kind": text}, path, field.bounds, also)
    if len(members) == 1 and specs:
        inner = ", ".join(setting.path for setting in _walk(field, value, path))
        raise SpecError(
            f"{path}: expected a group of settings, got {text!r}. Set one of {inner}, or pass the "
            f"group as JSON."
        )
    data = _data_of(field.annotation, text)
    if data is _NOTHING:
        raise SpecError(unfit(field.annotation, text, path, field.bounds))
    return read(field.annotation, data, path, field.bounds)


_NOTHING = object()  # a sentinel, because None is a value


def _data_of(annotation: Any, text: str) -> Any:
    """Convert text to JSON data for the first member that accepts it. A str accepts any text and therefore comes
    last.
    """
    members = sorted(members_of(annotation), key=lambda member: member is str)
    readings = (_member_data(member, text) for member in members)
    return next((data for data in readings if data is not _NOTHING), _NOTHING)


def _member_data(member: Any, text: str) -> Any:
    if member is str:
        return text
    if member is types.NoneType:
        return None if text.lower() == "none" else _NOTHING
    if member is bool:
        return {"true": True, "false": False}.get(text.lower(), _NOTHING)
    if member is int or member is float:
        try:
            return member(text)
        except ValueError:
            return _NOTHING
    if typing.get_origin(member) is Literal:
        choices = typing.get_args(member)
        return next((choice for choice in choices if str(choice) == text), _NOTHING)
    if typing.get_origin(member) is tuple:
        return _items_data(member, [part.strip() for part in text.split(",")] if text else [])
    return _NOTHING


def _items_data(annotation: Any, texts: Sequence[str]) -> list[Any]:
    """Convert the items of a tuple; an item that cannot be parsed stays text, and the error shows it."""
    items = items_of(annotation, len(texts))
    if items is None:
        return list(texts)
    read_items = [_data_of(item, text) for item, text in zip(items, texts, strict=True)]
    return [
        text if data is _NOTHING else data for data, text in zip(read_items, texts, strict=True)
    ]

"""Specs as JSON, exact both ways; errors name the path of the field."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import FovealError, SpecError
from ._annotations import (
    advice,
    fits,
    in_words,
    items_of,
    join,
    members_of,
    specs_among,
    tuple_among,
    unfit,
)
from ._fields import NO_BOUNDS, Bounds, fields_of, kind_of


def to_data(spec: Any) -> dict[str, Any]:
    """The spec as what JSON can hold: its kind first, then every field, those at their defaults too."""
    names = sorted(fields_of(type(spec)), key=lambda name: name != "kind")
    return {name: _to_data(getattr(spec, name)) for name in names}


def _to_data(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_data(value)
    return [_to_data(item) for item in value] if isinstance(value, tuple) else value


def from_data(annotation: Any, data: Any) -> Any:
    """The spec that `to_data` wrote. A field that is missing takes its default, so that a spec
    written before the field existed can still be read.

    Args:
        annotation: a spec, or a union of specs.
        data: what JSON gave.
    """
    return read(annotation, data, "", NO_BOUNDS)


def to_json(spec: Any) -> str:
    """The spec as JSON, indented for a reader."""
    check(spec)
    return json.dumps(to_data(spec), indent=2, ensure_ascii=False)


def from_json(annotation: Any, text: str) -> Any:
    """The spec that `to_json` wrote; `annotation` as in `from_data`."""
    return from_data(annotation, parse_json(text, "the spec"))


def check(spec: Any) -> None:
    """Raise `SpecError` where a value does not fit its field's annotation or limits.

    A dataclass takes whatever it is given; whoever builds from one calls this first.
    """
    from_data(type(spec), to_data(spec))


def read(annotation: Any, data: Any, path: str, bounds: Bounds) -> Any:
    """The value that data gives at a path."""
    members = members_of(annotation)
    specs, items = specs_among(members), tuple_among(members)
    if specs and isinstance(data, Mapping):
        return _read_spec(_chosen(specs, data, path), data, path)
    if items is not None and isinstance(data, list | tuple):
        return _read_tuple(items, data, path, bounds)
    for member in members:
        if fits(member, data):
            value = float(data) if member is float else data
            if not isinstance(value, int | float) or bounds.allow(value):
                return value
    raise SpecError(unfit(annotation, data, path, bounds))


def _read_tuple(annotation: Any, data: Sequence[Any], path: str, bounds: Bounds) -> tuple[Any, ...]:
    items = items_of(annotation, len(data))
    if items is None:
        raise SpecError(unfit(annotation, list(data), path, bounds))
    return tuple(
        read(item, part, join(path, str(index)), bounds)
        for index, (item, part) in enumerate(zip(items, data, strict=True))
    )


def _read_spec(spec: type, data: Mapping[str, Any], path: str) -> Any:
    known = fields_of(spec)
    for name in data:
        if name not in known:
            near = advice(name, known, f"It has {', '.join(known)}.")
            raise SpecError(f"{join(path, name)}: {spec.__name__} has no such field. {near}")
    values = {}
    for name, field in known.items():
        if name in data:
            values[name] = read(field.annotation, data[name], join(path, name), field.bounds)
        elif field.required:
            raise SpecError(
                f"{join(path, name)}: missing, and {spec.__name__} has no default for it. "
                f"Expected {in_words(field.annotation, field.bounds)}; add it."
            )
    return made(spec, values, path)


def _chosen(specs: Sequence[type], data: Mapping[str, Any], path: str) -> type:
    """The member of a union that data names."""
    if len(specs) == 1:
        return specs[0]
    kinds = {kind_of(spec): spec for spec in specs}
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        got = "none" if kind is None else repr(kind)
        raise SpecError(
            f"{join(path, 'kind')}: expected one of {', '.join(kinds)}, got {got}. "
            f"{advice(str(kind), kinds, 'Give one of these.')}"
        )
    return kinds[kind]


def made(spec: type, values: Mapping[str, Any], path: str) -> Any:
    """The spec with these values; what it refuses itself is said with the path."""
    try:
        return spec(**values)
    except FovealError as error:
        raise SpecError(f"{path or spec.__name__}: {error}") from error


def parse_json(text: str, what: str) -> Any:
    r"""Parse JSON strictly: a name may occur once in an object, and a text must be valid Unicode.

    Args:
        text: the JSON.
        what: what it is, for the error.

    Raises:
        SpecError: the text is not JSON, is nested too deeply, or repeats a name.

    >>> parse_json('{"a": [1, 2]}', "the list")
    {'a': [1, 2]}
    """
    try:
        data = json.loads(text, object_pairs_hook=_without_repeats)
        if "\\ud" in text.lower():  # maybe half of a surrogate pair, which no output can hold
            json.dumps(data, ensure_ascii=False).encode()
    except SpecError:
        raise
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{what}: not JSON: {error}. Correct the text there.") from None
    return data


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SpecError(f"{twice}: given twice in one object, expected once. Remove one.")
    return dict(pairs)

"""Specs as JSON: reading and writing are exact inverses, and errors name the path of the field."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import FovealError, SpecError
from ._annotations import (
    advice,
    bases_among,
    choices_among,
    fits,
    in_words,
    items_of,
    join,
    members_of,
    specs_among,
    tuple_among,
    unfit,
)
from ._checking import check
from ._fields import NO_BOUNDS, Bounds, fields_of, kind_of


class OutsideError(SpecError):
    """A spec needs a user-defined class that was not passed."""


CLASS = "class"  # in JSON: the class of a user-defined spec


def to_data(spec: Any, annotation: Any = None) -> dict[str, Any]:
    """Convert a spec to data for JSON: its kind first, then every field, including defaults. A spec whose class is
    not listed in the annotation of its field also contains the name of its class.

    Args:
        spec: Spec to convert.
        annotation: Specs that the field accepts; by default only this one.

    Returns:
        Fields as JSON values, by name.
    """
    cls = type(spec)
    known = fields_of(cls)
    names = sorted(known, key=lambda name: name != "kind")
    data = {name: _to_data(getattr(spec, name), known[name].annotation) for name in names}
    if annotation is None or cls in specs_among(members_of(annotation)):
        return data
    return {CLASS: f"{cls.__module__}.{cls.__qualname__}"} | data


def _to_data(value: Any, annotation: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_data(value, annotation)
    if not isinstance(value, tuple):
        return value
    items = items_of(tuple_among(members_of(annotation)), len(value))
    assert items is not None
    return [_to_data(item, one) for item, one in zip(value, items, strict=True)]


def from_data(annotation: Any, data: Any, *, also: Sequence[type] = ()) -> Any:
    """Read a spec that `to_data` wrote. Missing fields take their defaults, so specs written before a field existed
    remain readable.

    Args:
        annotation: Spec class, or a union of spec classes.
        data: Parsed JSON.
        also: User-defined specs, which are accepted if the annotation of a field names their abstract base. No other
            class is looked up, and nothing is imported.

    Returns:
        The spec.

    Raises:
        SpecError: The data does not fit the annotations.
    """
    return read(annotation, data, "", NO_BOUNDS, also)


def to_json(spec: Any, annotation: Any = None) -> str:
    """Check a spec and convert it to indented JSON.

    Args:
        spec: Spec to convert.
        annotation: Specs that the field accepts; by default only this one.

    Returns:
        The JSON text.

    Raises:
        SpecError: A value of the spec does not fit its field.
    """
    check(spec)
    return json.dumps(to_data(spec, annotation), indent=2, ensure_ascii=False)


def from_json(annotation: Any, text: str, *, also: Sequence[type] = ()) -> Any:
    """Read a spec that `to_json` wrote. Missing fields take their defaults.

    Args:
        annotation: Spec class, or a union of spec classes.
        text: JSON text.
        also: User-defined specs, which are accepted if the annotation of a field names their abstract base.

    Returns:
        The spec.

    Raises:
        SpecError: The text is not JSON, or does not fit the annotations.
    """
    return from_data(annotation, parse_json(text, "the spec"), also=also)


def read(annotation: Any, data: Any, path: str, bounds: Bounds, also: Sequence[type] = ()) -> Any:
    """Read the value at a path from data."""
    members = members_of(annotation)
    specs, items = choices_among(members, also), tuple_among(members)
    if (specs or bases_among(members)) and isinstance(data, Mapping):
        return _read_spec(_chosen(specs, data, path), data, path, also)
    if items is not None and isinstance(data, list | tuple):
        return _read_tuple(items, data, path, bounds, also)
    for member in members:
        if fits(member, data):
            value = float(data) if member is float else data
            if not isinstance(value, int | float) or bounds.allow(value):
                return value
    raise SpecError(unfit(annotation, data, path, bounds))


def _read_tuple(
    annotation: Any, data: Sequence[Any], path: str, bounds: Bounds, also: Sequence[type]
) -> tuple[Any, ...]:
    items = items_of(annotation, len(data))
    if items is None:
        raise SpecError(unfit(annotation, list(data), path, bounds))
    return tuple(
        read(item, part, join(path, str(index)), bounds, also)
        for index, (item, part) in enumerate(zip(items, data, strict=True))
    )


def _read_spec(spec: type, data: Mapping[str, Any], path: str, also: Sequence[type]) -> Any:
    known = fields_of(spec)
    for name in data:
        if name not in known and not (name == CLASS and spec in also):
            near = advice(name, known, f"Its fields: {', '.join(known)}.")
            raise SpecError(f"{join(path, name)}: unknown field of {spec.__name__}. {near}")
    values = {}
    for name, field in known.items():
        if name in data:
            part = _with_kind(data[name], field.default_kind)
            values[name] = read(field.annotation, part, join(path, name), field.bounds, also)
        elif field.required:
            raise SpecError(
                f"{join(path, name)}: missing, and {spec.__name__} has no default for it. "
                f"Expected {in_words(field.annotation, field.bounds)}; add it."
            )
    return made(spec, values, path)


def _with_kind(data: Any, default: str | None) -> Any:
    """Add a kind to data without one, if the field has a default for it."""
    if default is None or not isinstance(data, Mapping) or "kind" in data or CLASS in data:
        return data
    return {"kind": default, **data}


def _chosen(specs: Sequence[type], data: Mapping[str, Any], path: str) -> type:
    """Return the member of a union that data names."""
    if len(specs) == 1 and CLASS not in data:
        return specs[0]
    kinds = {kind_of(spec): spec for spec in specs}
    if len(kinds) < len(specs):
        raise SpecError(_taken_twice(specs, path))
    kind = data.get("kind")
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind]
    if isinstance(data.get(CLASS), str):
        name = data[CLASS].rpartition(".")[2]
        raise OutsideError(
            f"{path or 'the spec'}: needs the class {data[CLASS]} (kind {kind!r}), which is not part of "
            f"foveal and was not given. In Python pass also=({name},), on the command line --with-specs "
            f"with the file that defines it."
        )
    got = "none" if kind is None else repr(kind)
    raise SpecError(
        f"{join(path, 'kind')}: expected one of {', '.join(kinds)}, got {got}. "
        f"{advice(str(kind), kinds, 'Give one of these.')}"
    )


def _taken_twice(specs: Sequence[type], path: str) -> str:
    kinds = [kind_of(spec) for spec in specs]
    twice = next(kind for kind in kinds if kinds.count(kind) > 1)
    names = [spec.__name__ for spec, kind in zip(specs, kinds, strict=True) if kind == twice]
    return (
        f"{path or 'the spec'}: {' and '.join(names)} have the same kind, {twice!r}. Use another kind "
        f"for yours, because the kind identifies a spec in JSON."
    )


def made(spec: type, values: Mapping[str, Any], path: str) -> Any:
    """Construct a spec from values; if its constructor raises an error, add the path to the message."""
    try:
        return spec(**values)
    except FovealError as error:
        raise SpecError(f"{path or spec.__name__}: {error}") from error


def parse_json(text: str, what: str) -> Any:
    r"""Parse JSON strictly: names in an object must be unique, and texts must be valid Unicode.

    Args:
        text: JSON text.
        what: Description of the text, for error messages.

    Returns:
        The parsed value.

    Raises:
        SpecError: The text is not JSON, is nested too deeply, or repeats a name.

    Examples:
        >>> parse_json('{"a": [1, 2]}', "the list")
        {'a': [1, 2]}
    """
    try:
        data = json.loads(text, object_pairs_hook=_without_repeats)
        if "\\ud" in text.lower():  # maybe an unpaired surrogate, which UTF-8 cannot encode
            json.dumps(data, ensure_ascii=False).encode()
    except SpecError:
        raise
    except (ValueError, RecursionError) as error:
        raise SpecError(
            f"{what}: invalid JSON: {error}. Correct the text at this position."
        ) from None
    return data


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SpecError(f"{twice}: given twice in one object, expected once. Remove one.")
    return dict(pairs)

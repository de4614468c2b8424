"""Annotations of spec fields: parse them, test values against them, and describe them in words."""

import dataclasses
import difflib
import functools
import inspect
import math
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Union

from ._fields import Bounds, fields_of, kind_of

_LEAVES = {
    types.NoneType: "none",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


@functools.cache
def members_of(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation itself. The strictest member comes first: int before float,
    and str last, because every text is a str.
    """
    if typing.get_origin(annotation) not in (Union, types.UnionType):
        return (annotation,)
    strict = [types.NoneType, bool, int, float]
    return tuple(
        sorted(
            typing.get_args(annotation),
            key=lambda member: strict.index(member) if member in strict else 4 + (member is str),
        )
    )


@functools.cache
def specs_among(members: tuple[Any, ...]) -> tuple[type, ...]:
    """Return the members that are concrete specs."""
    return tuple(
        member
        for member in members
        if isinstance(member, type)
        and dataclasses.is_dataclass(member)
        and not inspect.isabstract(member)
    )


@functools.cache
def bases_among(members: tuple[Any, ...]) -> tuple[type, ...]:
    """Return the members that are abstract base classes; the field accepts any spec that derives from one."""
    return tuple(m for m in members if isinstance(m, type) and inspect.isabstract(m))


def choices_among(members: tuple[Any, ...], also: Sequence[type]) -> tuple[type, ...]:
    """Return the specs of a union, and the classes in `also` that derive from one of its abstract bases."""
    specs, bases = specs_among(members), bases_among(members)
    return specs + tuple(one for one in also if issubclass(one, bases) and one not in specs)


def tuple_among(members: Iterable[Any]) -> Any:
    """Return the member that is a tuple, or None."""
    return next((member for member in members if typing.get_origin(member) is tuple), None)


def items_of(annotation: Any, size: int) -> tuple[Any, ...] | None:
    """Return the annotations of the items of a tuple with `size` items; None if it cannot have this size."""
    items = typing.get_args(annotation)
    if items[-1] is Ellipsis:
        return (items[0],) * size
    return items if len(items) == size else None


def fits(member: Any, data: Any) -> bool:
    """Return True if data is a value of a member that is neither spec nor tuple. Booleans do not count as numbers,
    and neither do infinities and NaN, which JSON cannot represent.
    """
    if typing.get_origin(member) is Literal:
        return any(type(data) is type(c) and data == c for c in typing.get_args(member))
    if member is float:
        return type(data) in (int, float) and math.isfinite(data)
    return member in _LEAVES and type(data) is member


def in_words(annotation: Any, bounds: Bounds) -> str:
    """Describe the values that a field accepts.

    Args:
        annotation: Type annotation of the field.
        bounds: Limits of numbers.

    Returns:
        A phrase for an error message.

    Examples:
        >>> in_words(int | None, Bounds(at_least=1))
        'a whole number of at least 1, or none'
    """
    members = members_of(annotation)
    bases = bases_among(members)
    named = [m for m in members if m is not types.NoneType and m not in bases] or bases
    text = either([_in_words(member, bounds) for member in named])
    return f"{text}, or none" if types.NoneType in members else text


def _in_words(member: Any, bounds: Bounds) -> str:
    if typing.get_origin(member) is Literal:
        return either([str(choice) for choice in typing.get_args(member)])
    if typing.get_origin(member) is tuple:
        items = typing.get_args(member)
        if items[-1] is Ellipsis:
            return f"a list, each {in_words(items[0], bounds)}"
        return f"a list of {len(items)}: {', '.join(in_words(item, bounds) for item in items)}"
    if isinstance(member, type) and inspect.isabstract(member):
        return f"a {member.__name__}"
    if dataclasses.is_dataclass(member):
        assert isinstance(member, type)
        return kind_of(member) if "kind" in fields_of(member) else f"a {member.__name__}"
    limits = str(bounds) if member in (int, float) else ""
    return f"{_LEAVES[member]} {limits}".rstrip()


def choices_of(annotation: Any) -> list[str]:
    """Return the options of a union of specs or literals."""
    choices = []
    for member in members_of(annotation):
        if typing.get_origin(member) is Literal:
            choices += [str(choice) for choice in typing.get_args(member)]
    kinds = [spec for spec in specs_among(members_of(annotation)) if "kind" in fields_of(spec)]
    return choices + [kind_of(spec) for spec in kinds]


def advice(got: str, options: Iterable[str], otherwise: str) -> str:
    """Suggest the option closest to an unknown word, or return `otherwise` if none is close."""
    near = difflib.get_close_matches(got, list(options), n=3)
    return f"Did you mean {either(near)}?" if near else otherwise


def unfit(annotation: Any, data: Any, path: str, bounds: Bounds) -> str:
    """Return the error message for data that does not fit the annotation."""
    got = "none" if data is None else repr(data)
    near = advice(data if isinstance(data, str) else "", choices_of(annotation), "Replace it.")
    return f"{path or 'the spec'}: expected {in_words(annotation, bounds)}, got {got}. {near}"


def either(words: Sequence[str]) -> str:
    """Join alternatives to an English list."""
    return " or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} or {words[-1]}"


def join(path: str, name: str) -> str:
    """Append a field name to a path."""
    return f"{path}.{name}" if path else name

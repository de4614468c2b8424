"""Check that the values of a spec fit the annotations and limits of its fields."""

import dataclasses
from typing import Any

from ..errors import SpecError
from ._annotations import (
    bases_among,
    fits,
    in_words,
    items_of,
    join,
    members_of,
    specs_among,
    tuple_among,
    unfit,
)
from ._fields import Bounds, fields_of, kind_of


def check(spec: Any) -> None:
    """Check that every value of a spec fits the annotation and the limits of its field.

    Dataclasses do not check their arguments, so call this function before you build from a spec.

    Args:
        spec: Spec to check, with the specs inside it.

    Raises:
        SpecError: A value does not fit.
    """
    _check_fields(spec, "")


def _check_fields(spec: Any, path: str) -> None:
    for name, field in fields_of(type(spec)).items():
        _check(field.annotation, getattr(spec, name), join(path, name), field.bounds)


def _check(annotation: Any, value: Any, path: str, bounds: Bounds) -> None:
    members = members_of(annotation)
    items = tuple_among(members)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _check_class(annotation, type(value), path, bounds)
        _check_fields(value, path)
    elif items is not None and isinstance(value, list | tuple):
        inner = items_of(items, len(value))
        if inner is None:
            raise SpecError(unfit(annotation, list(value), path, bounds))
        for index, (item, part) in enumerate(zip(inner, value, strict=True)):
            _check(item, part, join(path, str(index)), bounds)
    elif not any(_fits(member, value, bounds) for member in members):
        raise SpecError(unfit(annotation, value, path, bounds))


def _fits(member: Any, value: Any, bounds: Bounds) -> bool:
    is_number = isinstance(value, int | float)
    return fits(member, value) and (not is_number or bounds.allow(value))


def _check_class(annotation: Any, cls: type, path: str, bounds: Bounds) -> None:
    """Refuse a spec that is not a member of the union and does not derive from an abstract base in it, and a spec
    that JSON could not distinguish from another member.
    """
    members = members_of(annotation)
    specs, bases = specs_among(members), bases_among(members)
    if cls in specs:
        return
    if not issubclass(cls, bases):
        wanted = " or ".join(base.__name__ for base in bases)
        advice = (
            f"Derive {cls.__name__} from {wanted}."
            if bases
            else "Replace it; this field accepts no other class."
        )
        raise SpecError(
            f"{path}: expected {in_words(annotation, bounds)}, got a {cls.__name__}. {advice}"
        )
    twin = next((spec for spec in specs if kind_of(spec) == kind_of(cls)), None)
    if twin is not None:
        raise SpecError(
            f"{path}: {cls.__name__} has the same kind as {twin.__name__}, {kind_of(cls)!r}. Use "
            f"another kind, because the kind identifies a spec in JSON."
        )

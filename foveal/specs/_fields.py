"""Fields of a spec: the default, the description, and the limits of numbers."""

import dataclasses
import functools
import typing
from abc import ABC
from typing import Any, Literal, NamedTuple, TypeVar, overload

from ..errors import SpecError


class Bounds(NamedTuple):
    """The limits of a number: `at_least <= number`, `above < number <= at_most`."""

    at_least: int | float | None = None
    above: int | float | None = None
    at_most: int | float | None = None

    def allow(self, number: int | float) -> bool:
        """Return True if the number is within the limits."""
        return not (
            (self.at_least is not None and number < self.at_least)
            or (self.above is not None and number <= self.above)
            or (self.at_most is not None and number > self.at_most)
        )

    def __str__(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least} to {self.at_most}"
        limits = zip(("of at least", "above", "of at most"), self, strict=True)
        return " and ".join(f"{words} {limit}" for words, limit in limits if limit is not None)


NO_BOUNDS = Bounds()
_T = TypeVar("_T")


@overload
def setting(
    *,
    about: str = "",
    at_least: int | float | None = None,
    above: int | float | None = None,
    at_most: int | float | None = None,
) -> Any: ...


@overload
def setting(
    default: _T,
    about: str = "",
    *,
    at_least: int | float | None = None,
    above: int | float | None = None,
    at_most: int | float | None = None,
    kind_optional: bool = False,
) -> _T: ...


def setting(
    default: Any = dataclasses.MISSING,
    about: str = "",
    *,
    at_least: int | float | None = None,
    above: int | float | None = None,
    at_most: int | float | None = None,
    kind_optional: bool = False,
) -> Any:
    """Declare a field of a spec.

    Args:
        default: Default value. Without one, the field is required.
        about: One-line description.
        at_least: Inclusive lower limit of a number, or of each number of a tuple.
        above: Exclusive lower limit.
        at_most: Inclusive upper limit.
        kind_optional: In JSON, a spec without a kind has the kind of the default; for a field that had only one choice
            in earlier versions.

    Returns:
        A dataclass field with this metadata.

    Examples:
        >>> @dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
        ... class DropoutSpec:
        ...     rate: float = setting(0.1, "share of what is set to 0", at_least=0, at_most=1)
        >>> DropoutSpec()
        DropoutSpec(rate=0.1)
    """
    bounds = Bounds(at_least, above, at_most)
    metadata = {"about": about, "bounds": bounds}
    if kind_optional:
        metadata["default_kind"] = kind_of(type(default))
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractSpec(ABC):
    """The root of all abstract spec classes. A field whose annotation names such a class accepts any spec that
    derives from it, from this package or from yours.
    """

    __slots__ = ()

    kind: str  # distinguishes specs in JSON: `kind: Literal["mine"] = "mine"`


class Field(NamedTuple):
    """A field of a spec, as the functions of this package use it."""

    name: str
    annotation: Any
    about: str
    bounds: Bounds
    required: bool
    default_kind: str | None = None  # of data without a kind


@functools.cache
def fields_of(spec: type) -> dict[str, Field]:
    """Return the fields of a spec, by name and in order."""
    hints = typing.get_type_hints(spec)
    missing = dataclasses.MISSING
    return {
        field.name: Field(
            field.name,
            hints[field.name],
            field.metadata.get("about", ""),
            field.metadata.get("bounds", NO_BOUNDS),
            field.default is missing and field.default_factory is missing,
            field.metadata.get("default_kind"),
        )
        for field in dataclasses.fields(spec)
    }


def kind_of(spec: type) -> str:
    """Return the name that identifies a spec in a union."""
    field = fields_of(spec).get("kind")
    if field is None or typing.get_origin(field.annotation) is not Literal:
        raise SpecError(
            f"{spec.__name__}: a member of a union of specs needs a kind, got none. "
            f'Add the field `kind: Literal["..."] = "..."`.'
        )
    return typing.get_args(field.annotation)[0]

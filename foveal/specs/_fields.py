"""A field of a spec: its default, what it does, and the numbers that it may hold."""

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
        """Whether the number is within."""
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
) -> _T: ...


def setting(
    default: Any = dataclasses.MISSING,
    about: str = "",
    *,
    at_least: int | float | None = None,
    above: int | float | None = None,
    at_most: int | float | None = None,
) -> Any:
    """A field: its default (without one it must be given), one line on what it does, and the limits
    of a number or of each number of a tuple.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
    ... class DropoutSpec:
    ...     rate: float = setting(0.1, "share of what is set to 0", at_least=0, at_most=1)
    >>> DropoutSpec()
    DropoutSpec(rate=0.1)
    """
    bounds = Bounds(at_least, above, at_most)
    return dataclasses.field(default=default, metadata={"about": about, "bounds": bounds})


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractSpec(ABC):
    """The base of all bases of specs. A field whose annotation names such a base takes any spec that
    derives from it, from this package or from yours.
    """

    __slots__ = ()

    kind: str  # what tells specs apart in JSON: `kind: Literal["mine"] = "mine"`


class Field(NamedTuple):
    """What the functions of this package know of a field."""

    name: str
    annotation: Any
    about: str
    bounds: Bounds
    required: bool


@functools.cache
def fields_of(spec: type) -> dict[str, Field]:
    """The fields of a spec, by name and in order."""
    hints = typing.get_type_hints(spec)
    missing = dataclasses.MISSING
    return {
        field.name: Field(
            field.name,
            hints[field.name],
            field.metadata.get("about", ""),
            field.metadata.get("bounds", NO_BOUNDS),
            field.default is missing and field.default_factory is missing,
        )
        for field in dataclasses.fields(spec)
    }


def kind_of(spec: type) -> str:
    """What tells a spec apart in a union."""
    field = fields_of(spec).get("kind")
    if field is None or typing.get_origin(field.annotation) is not Literal:
        raise SpecError(
            f"{spec.__name__}: a member of a union of specs needs a kind, got none. "
            f'Add the field `kind: Literal["..."] = "..."`.'
        )
    return typing.get_args(field.annotation)[0]

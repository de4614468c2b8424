"""A finding: one diagnosis of a model or a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["alarm", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("alarm", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A diagnosis with its evidence and its remedy.

    An alarm means that something is broken, a warning that something costs quality. A note helps to read the
    curves.
    """

    name: str  # the term of the literature, for example "vanishing gradient"
    severity: Severity
    text: str  # the measurement, in plain words
    cause: str
    remedy: str  # the flag or the setting that helps
    drawing: str = ""  # SVG, or nothing
    numbers: Mapping[str, float] = field(default_factory=dict)

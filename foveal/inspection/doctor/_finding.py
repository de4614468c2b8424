"""A finding: one thing that the doctor has to say about a model or a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["alarm", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("alarm", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found, why, and what helps.

    An alarm says that something is broken, a warning that something costs quality, a note what a
    reader of the curves may want to know.
    """

    name: str  # as the literature calls it: "vanishing gradient"
    severity: Severity
    text: str  # what was measured, in plain words
    cause: str
    remedy: str  # the flag or the setting that helps
    drawing: str = ""  # SVG, or nothing
    numbers: Mapping[str, float] = field(default_factory=dict)

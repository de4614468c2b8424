"""Readings: measurements by name. `gradient_rate/decoder` is a number, `gradient_norms/decoder` a list of numbers."""

import math
from collections.abc import Mapping
from typing import TypeAlias

Readings: TypeAlias = Mapping[str, float | list[float]]  # the return value of a probe of `fit`


def number(readings: Readings, path: str, default: float = math.nan) -> float:
    """Return one number, or `default` if it was not measured."""
    value = readings.get(path, default)
    return default if isinstance(value, list) else value

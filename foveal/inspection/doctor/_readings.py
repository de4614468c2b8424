"""Readings: what was measured, by name. `gradient_rate/decoder` is a number, `gradient_norms/decoder`
a row of them.
"""

import math
from collections.abc import Mapping
from typing import TypeAlias

Readings: TypeAlias = Mapping[str, float | list[float]]  # what a probe of `fit` gives


def number(readings: Readings, path: str, default: float = math.nan) -> float:
    """One number, which may not be there."""
    value = readings.get(path, default)
    return default if isinstance(value, list) else value

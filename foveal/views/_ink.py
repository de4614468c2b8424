"""From weights to ink: validation, the scale, and the number of marks."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from ..attention import AttentionTrace
from ..errors import ValueRangeError
from ._text import named, number
from ._theme import Tone, tone

# With about 120 bytes for a mark and its title, a drawing stays below half a megabyte.
MOST_MARKS = 4000
LEGEND_STEPS = 11
LEAST_TOP = 1e-4  # smaller weights are drawn without ink


class Ink(NamedTuple):
    """The ink of a mark, and the tone of the text on it."""

    opacity: str
    tone: Tone


class Scale(NamedTuple):
    """A scale from weights to ink: `top` gets full ink, and weights below `least` get no mark."""

    top: float
    least: float

    def ink(self, weight: float) -> Ink:
        """Return the ink of a weight."""
        share = min(weight / self.top, 1.0)
        return Ink(f"{share:.3f}".rstrip("0").rstrip(".") or "0", tone(share))

    @property
    def legend(self) -> tuple[Ink, ...]:
        """Return the steps of the ramp, from none to full."""
        return tuple(self.ink(self.top * k / (LEGEND_STEPS - 1)) for k in range(LEGEND_STEPS))

    @property
    def label(self) -> str:
        """Return the weight that gets full ink."""
        return f"{self.top:g}"


def scale_of(weights: Iterable[float], *, least: float = 0.0) -> Scale:
    """Return the scale of a drawing. Its top is 1, 2 or 5 times a power of ten, so drawings of similar weights
    share a scale; its least weight leaves at most `MOST_MARKS` marks.
    """
    ordered = sorted(weights, reverse=True)
    most = ordered[0] if ordered else 0.0
    if len(ordered) > MOST_MARKS:
        beyond = ordered[MOST_MARKS]
        least = max(least, math.nextafter(beyond, math.inf))
    if most <= 0:
        return Scale(1.0, least)
    most = max(most, LEAST_TOP)
    power = 10.0 ** math.floor(math.log10(most))
    # The tolerance forgives weights that sum to a little over 1.
    top = next(power * digit for digit in (1, 2, 5, 10) if most <= power * digit * (1 + 1e-4))
    return Scale(top, least)


def check_weights(view: str, trace: AttentionTrace) -> None:
    """Raise an error unless every weight is finite and can be drawn."""
    for target, row in zip(trace.targets, trace.weights, strict=True):
        for source, weight in zip(trace.sources, row, strict=True):
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueRangeError(
                    f"{view}: weights must be finite and at least 0, got {weight} where "
                    f"{target!r} reads {source!r}. Not a number means that the model has diverged: "
                    f"train it again with a lower learning rate or with clipping."
                )


def heading(trace: AttentionTrace, title: str | None, default: str) -> str:
    """Return the title of a drawing: the given one, or a description with the kind of attention."""
    return title if title is not None else f"{default} ({trace.kind} attention)"


def strongest(trace: AttentionTrace, limit: int = 12, *, verb: str = "reads") -> str:
    """Describe the strongest position of each target in a sentence, for screen readers."""
    if not trace.targets or not trace.sources:
        return "There is nothing to show."
    said = list[str]()
    for target, row in zip(trace.targets[:limit], trace.weights[:limit], strict=True):
        best = max(range(len(row)), key=row.__getitem__)
        said.append(f"{named(target)} {verb} {named(trace.sources[best])} ({number(row[best])})")
    more = len(trace.targets) - len(said)
    return "Strongest: " + "; ".join(said) + (f"; and {more} more." if more else ".")

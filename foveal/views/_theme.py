"""The light and dark colors of every drawing and page, and the one ramp from paper to ink.

    color(ink) = (1 - ink) paper + ink * theme.ink        ink in [0, 1]

The ramp is one color of increasing opacity, so lightness is monotone in the weight and gray print
reads the same. Text on the ramp is black or white, whichever has more contrast: at least 4.58 to 1 on
any color, above the 4.5 that WCAG 2 requires.
"""

import math
from functools import cache
from typing import Literal, NamedTuple


class Theme(NamedTuple):
    """The colors of one scheme, as #rrggbb."""

    paper: str  # behind everything
    text: str
    muted: str  # secondary text
    rule: str  # thin separators that carry no information
    edge: str  # borders that must be visible
    ink: str  # the far end of the ramp
    accent: str  # marks the most probable structure
    series: tuple[str, ...]  # curves


LIGHT = Theme(
    paper="#ffffff",
    text="#16181d",
    muted="#555a63",
    rule="#d9dce1",
    edge="#767b85",
    ink="#0a3470",
    accent="#b3380a",
    series=("#0a3470", "#b3380a", "#1b7340", "#6d3bb5", "#7a5c00", "#a3195b"),
)
DARK = Theme(
    paper="#14171c",
    text="#e8eaed",
    muted="#a9afb9",
    rule="#3a3f48",
    edge="#868c97",
    ink="#bfdcff",
    accent="#ffb057",
    series=("#8fc1ff", "#ffb057", "#7fd69f", "#cdb0ff", "#e0c65a", "#ff9cc4"),
)


def channels(color: str) -> tuple[int, int, int]:
    """Return red, green and blue of #rrggbb."""
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    return red, green, blue


def luminance(red: float, green: float, blue: float) -> float:
    """Return the relative luminance of channels 0 to 255 (WCAG 2.2)."""
    shares = (red / 255, green / 255, blue / 255)
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ramp(theme: Theme, ink: float) -> tuple[float, float, float]:
    """Return the color of the ramp at `ink`, blended channel by channel like a browser does."""
    paper, full = channels(theme.paper), channels(theme.ink)
    red, green, blue = ((1 - ink) * low + ink * high for low, high in zip(paper, full, strict=True))
    return red, green, blue


Tone = Literal["kk", "kw", "wk", "ww"]


@cache
def _turn(theme: Theme) -> float:
    """Return the ink at which black and white contrast equally: (L + 0.05)^2 = 0.05 * 1.05."""
    rising = luminance(*ramp(theme, 1.0)) > luminance(*ramp(theme, 0.0))
    low, high = 0.0, 1.0
    for _ in range(30):  # luminance is monotone in ink: bisect
        middle = (low + high) / 2
        if (luminance(*ramp(theme, middle)) > math.sqrt(0.05 * 1.05) - 0.05) == rising:
            high = middle
        else:
            low = middle
    return low


def tone(ink: float) -> Tone:
    """Return the color of text on the ramp in the light and in the dark scheme: k black, w white."""
    if ink < _turn(LIGHT):
        return "kw" if ink < _turn(DARK) else "kk"
    return "ww" if ink < _turn(DARK) else "wk"

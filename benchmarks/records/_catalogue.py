"""Which recipes there are, of which cases each is made, and what has been published on them.

Published figures are those of the best system of each case, whichever that was, and of the best system
over all cases where one is named; most are ensembles. They come from the papers given with the recipes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from recipes import g2p_low, g2p_medium
from sightline.training import Run


class Record(NamedTuple):
    """A recipe and what it is measured against."""

    run: Callable[[str], Run]
    cases: Sequence[str]
    published: Mapping[str, float]  # by case, in the main metric
    aim: float  # for the mean of all cases


RECORDS = {
    "g2p_low": Record(
        g2p_low.recipe,
        g2p_low.LANGUAGES,
        dict(zip(g2p_low.LANGUAGES, (22, 21, 12, 19, 34, 55, 19, 10, 49, 10), strict=True)),
        25.1,
    ),
    "g2p_medium": Record(
        g2p_medium.recipe,
        g2p_medium.LANGUAGES,
        dict(
            zip(
                g2p_medium.LANGUAGES,
                (7.0, 18.3, 14.7, 8.5, 0.0, 32.1, 1.8, 5.2, 16.3, 2.5),
                strict=True,
            )
        ),
        10.6,
    ),
}

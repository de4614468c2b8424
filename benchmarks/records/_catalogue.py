"""Which recipes there are, of which cases each is made, and what has been published on them.

Published figures are those of the best system of each case, whichever that was, and of the best system
over all cases where one is named; most are ensembles. They come from the papers given with the recipes,
but for two: of transliteration the paper's own tables were not to be had, and the figure for Russian is
that of the example run in its repository; the translations from German are those of a well-known
tutorial (bentrevett/pytorch-seq2seq, GRU with attention).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from recipes import (
    de_en,
    g2p_english,
    g2p_low,
    g2p_medium,
    inflection,
    ja_en,
    katakana,
    scan,
)
from sightline.training import Run

MEAN = "mean"  # of all cases, where one would put a case


class Record(NamedTuple):
    """A recipe and what it is measured against."""

    run: Callable[[str], Run]
    cases: Sequence[str]
    published: Mapping[str, float]  # by case, in the main metric
    aims: Mapping[str, float]  # by case, or for the mean of all
    is_averaged: bool = True  # whether cases are of one kind, so that their mean says something


def _by_case(cases: Sequence[str], *figures: float) -> dict[str, float]:
    return dict(zip(cases, figures, strict=True))


RECORDS = {
    "g2p_low": Record(
        g2p_low.recipe,
        g2p_low.LANGUAGES,
        _by_case(g2p_low.LANGUAGES, 22, 21, 12, 19, 34, 55, 19, 10, 49, 10),
        {MEAN: 25.1},
    ),
    "g2p_medium": Record(
        g2p_medium.recipe,
        g2p_medium.LANGUAGES,
        _by_case(g2p_medium.LANGUAGES, 7.0, 18.3, 14.7, 8.5, 0.0, 32.1, 1.8, 5.2, 16.3, 2.5),
        {MEAN: 10.6},
    ),
    "g2p_english": Record(
        g2p_english.recipe, g2p_english.LANGUAGES, {"eng_us": 41.94}, {"eng_us": 41.9}
    ),
    "katakana": Record(katakana.recipe, katakana.SCRIPTS, {"russian": 40.3}, {"russian": 40.3}),
    "inflection": Record(inflection.recipe, inflection.LANGUAGES, {}, {}),
    "scan": Record(
        scan.recipe,
        scan.CASES,
        {"simple": 0.2, "jump": 99.0, "length": 80.0},
        {"simple": 0.5},
        is_averaged=False,
    ),
    "ja_en": Record(
        ja_en.recipe, tuple(ja_en.SOURCES), {}, {"characters": 32.0}, is_averaged=False
    ),
    "de_en": Record(
        de_en.recipe, de_en.TESTS, {"test_2016_flickr": 28.3}, {"test_2016_flickr": 32.3}
    ),
}

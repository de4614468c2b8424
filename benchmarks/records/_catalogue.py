"""The recipes, the cases of each, and the published figures for comparison.

Every published figure has a kind and a source (`Reference`). The baselines of G2P and inflection are the
official baselines of the shared tasks; the best systems of these tasks make fewer errors.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from foveal.training import Run
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

from ..results import Kind

MEAN = "mean"  # key of the mean over all cases, next to case names


class Reference(NamedTuple):
    """Published figures on the same test files, in the main metric."""

    name: str  # the column of the table
    kind: Kind
    source: str
    figures: Mapping[str, float]  # by case, or for the mean of all
    unit: str = "%"


class Record(NamedTuple):
    """A recipe and the figures that it is compared with."""

    run: Callable[[str], Run]
    cases: Sequence[str]
    references: Sequence[Reference]
    aims: Mapping[str, float]  # by case, or for the mean of all
    is_averaged: bool = True  # True if the mean over cases is meaningful
    aims_together: Mapping[int, Mapping[str, float]] = {}  # of ensembles, by size

    def aim(self, case: str, num_members: int) -> float | None:
        """Return the aim of a single model or an ensemble. Without aims of ensembles, both have the same."""
        if num_members == 1 or not self.aims_together:
            return self.aims.get(case)
        return self.aims_together.get(num_members, {}).get(case)


def _by_case(cases: Sequence[str], *figures: float) -> dict[str, float]:
    """Return the figures by case, and their mean."""
    by_case = dict(zip(cases, figures, strict=True))
    return {**by_case, MEAN: round(mean(figures), 2)} if len(figures) > 1 else by_case


def _g2p_baseline(cases: Sequence[str], *figures: float) -> Reference:
    """The baseline of the shared task on G2P, which is an ensemble of neural transducers."""
    return Reference(
        name="organizers' baseline",
        kind="baseline",
        source="SIGMORPHON 2021 task 1, github.com/sigmorphon/2021-task1, README, baseline results",
        figures=_by_case(cases, *figures),
    )


def _g2p_best(case: str, baseline: float, reduction: int) -> Reference:
    """The best submission to the same task, from its relative reduction of errors; the abstract has no other figure."""
    return Reference(
        name="best submission",
        kind="best system",
        source=f"SIGMORPHON 2021 task 1, Ashby et al. 2021, abstract: {reduction} % fewer errors than the baseline, "
        f"from which this figure is computed; the abstract does not say whether it is a single model or an ensemble",
        figures={case: round(baseline * (1 - reduction / 100), 1)},
    )


RECORDS = {
    "g2p_low": Record(
        g2p_low.recipe,
        g2p_low.LANGUAGES,
        (
            _g2p_baseline(g2p_low.LANGUAGES, 22, 21, 12, 19, 34, 55, 19, 10, 49, 10),
            _g2p_best(MEAN, 25.1, reduction=4),
        ),
        {MEAN: 26.0},
        aims_together={5: {MEAN: 24.1}},
    ),
    "g2p_medium": Record(
        g2p_medium.recipe,
        g2p_medium.LANGUAGES,
        (
            _g2p_baseline(
                g2p_medium.LANGUAGES, 7.0, 18.3, 14.7, 8.5, 0.0, 32.1, 1.8, 5.2, 16.3, 2.5
            ),
        ),
        # The baseline is an ensemble, so it is a target for ensembles; for single models it is a reference.
        {},
        aims_together={3: {MEAN: 10.64}},
    ),
    "g2p_english": Record(
        g2p_english.recipe,
        g2p_english.LANGUAGES,
        (
            _g2p_baseline(g2p_english.LANGUAGES, 41.94),
            _g2p_best("eng_us", 41.94, reduction=11),
        ),
        {"eng_us": 41.9},
    ),
    "katakana": Record(
        katakana.recipe,
        katakana.SCRIPTS,
        (
            Reference(
                name="example run",
                kind="example",
                source="github.com/steveash/NETransliteration-COLING2018, the run shown in its README",
                figures={"russian": 40.3},
            ),
        ),
        {"russian": 40.3},
    ),
    "inflection": Record(
        inflection.recipe,
        inflection.LANGUAGES,
        (
            Reference(
                name="organizers' non-neural baseline",
                kind="baseline",
                source="SIGMORPHON 2023 task 0, nonneural.py of github.com/sigmorphon/2023InflectionST, "
                "run on the same test files",
                figures=_by_case(
                    inflection.LANGUAGES,
                    *(20.2, 3.4, 19.2, 22.3, 69.1, 35.5, 25.3, 25.0),
                    *(35.9, 18.0, 14.0, 12.2, 35.4),
                ),
            ),
        ),
        {MEAN: 18.0, "jap": 30.0},
        aims_together={3: {MEAN: 16.0}},
    ),
    "scan": Record(
        scan.recipe,
        scan.CASES,
        (
            Reference(
                name="recurrent networks of the paper",
                kind="paper",
                source="Lake and Baroni 2018",
                figures={"simple": 0.2, "jump": 99.0, "length": 80.0},
            ),
        ),
        {"simple": 0.5},
        is_averaged=False,
    ),
    "ja_en": Record(
        ja_en.recipe, tuple(ja_en.SOURCES), (), {"characters": 32.0}, is_averaged=False
    ),
    "de_en": Record(
        de_en.recipe,
        de_en.TESTS,
        (
            Reference(
                name="GRU of a tutorial",
                kind="tutorial",
                source="github.com/bentrevett/pytorch-seq2seq, GRU with attention",
                figures={"test_2016_flickr": 28.3},
                unit="BLEU",
            ),
            Reference(
                name="transformer of a tutorial",
                kind="tutorial",
                source="github.com/bentrevett/pytorch-seq2seq, transformer",
                figures={"test_2016_flickr": 36.5},
                unit="BLEU",
            ),
        ),
        {"test_2016_flickr": 32.3},
    ),
}

"""Transliteration and pronunciation with the four ways in which a decoder gets its source.

    foveal fit --recipe recipes/conditioning.py:hin_both --out runs/hin_both
    python -m benchmarks.lectures fit conditioning --runs runs              all cases, three seeds
    python -m benchmarks.lectures score conditioning --runs runs

A case is a corpus and a way (CS7015 Lecture 16, Khapra, section 16.2); h is the last state of the encoder:

    initial_state     s_0 = h                                               option 1
    every_step        s_t = RNN( s_{t-1}, [y_{t-1}; h] ),   s_0 = 0         option 2
    both              s_0 = h, and h at every step
    attention         s_0 = h, and attention to the letters after every step

`hin` has 3,600 Hindi words in Devanagari and their phones (SIGMORPHON 2020, task 1), and `katakana` has 63,000 names
in Latin letters and in katakana. All cases of a corpus have the same other settings. `foveal data get
translit_coling2018` gets the names; the data folder must have `g2p_sigmorphon2020/train/hin_train.tsv`, and the same for
`dev` and `test`, from github.com/sigmorphon/2020 (task1/data).

References: Gorman et al. 2020 (Hindi); Merhav and Ash 2018 (names).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from foveal.data import TabSeparated, tsv
from foveal.datasets import data_folder
from foveal.models import SoftmaxSpec
from foveal.tasks import TransductionSpec
from foveal.training import Run
from recipes import g2p_medium, katakana
from recipes.hypotheses import BRIDGES

DATA = data_folder()


def hindi() -> Run:
    """Return the recipe of 8,000 words for the 3,600 Hindi words."""
    train, dev, test = (part(name) for name in ("train", "dev", "test"))
    return replace(g2p_medium.recipe(), train=train, dev=dev, test=test)


def part(name: str) -> TabSeparated:
    """Return one of the three files; a line has a word, a tab, and its phones separated by spaces."""
    return tsv(DATA / f"g2p_sigmorphon2020/{name}/hin_{name}.tsv")


CORPORA: dict[str, Callable[[], Run]] = {"hin": hindi, "katakana": katakana.recipe}
CASES = tuple(f"{corpus}_{way}" for corpus in CORPORA for way in BRIDGES)


def recipe(case: str = "hin_attention") -> Run:
    """Return the recipe of a corpus, with the decoder of a way."""
    corpus, _, way = case.partition("_")
    run = CORPORA[corpus]()
    assert isinstance(run.task, TransductionSpec)
    model = run.task.model
    attention = SoftmaxSpec() if way == "attention" else None
    decoder = replace(model.decoder, attention=attention, bridge=BRIDGES[way])
    return replace(run, task=replace(run.task, model=replace(model, decoder=decoder)))


# fmt: off
hin_initial_state, hin_every_step, hin_both, hin_attention = (
    partial(recipe, f"hin_{way}") for way in BRIDGES)
katakana_initial_state, katakana_every_step, katakana_both, katakana_attention = (
    partial(recipe, f"katakana_{way}") for way in BRIDGES)
# fmt: on

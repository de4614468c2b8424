"""Inflection: a form from a lemma and features; SIGMORPHON 2023 task 0, twelve languages.

    foveal fit --recipe recipes/inflection.py --out runs/deu        or :fin, :tur, ... any of LANGUAGES
    python -m benchmarks.records fit inflection --runs runs            all of them, three seeds
    python -m benchmarks.records score inflection --runs runs

Each language has 10,000 training forms and 1,000 test forms of other lemmas. Hebrew is trained without vowels
(heb_unvoc) and with vowels (heb). `foveal data get inflection_sigmorphon2023` gets the
data.

A form repeats most letters of its lemma. The model copies them, also letters that training does not have, and reads single
features: `V;IND;PRS;NOM(2,SG)` becomes `V`, `IND`, `PRS`, `NOM`, `2` and `SG`.

Reference: Goldman et al. 2023, SIGMORPHON-UniMorph 2023 shared task 0.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from typing_extensions import override

from foveal.data import AbstractSourceSpec, CharacterSpec, Example, FeaturesSpec, tsv
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.specs import setting
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
LANGUAGES = (
    *("deu", "eng", "fin", "fra", "heb", "heb_unvoc", "hun", "ita"),
    *("jap", "kat", "rus", "spa", "tur"),
)
# Hebrew has hundreds of combinations of letters and vowels, hence letters and marks are separate tokens.
LETTERS = CharacterSpec(unit="code_point")
# A letter in fewer than 1 of 200 training forms is an unknown token, as the new kanji of the test are, and the model learns
# to copy it. All forms of a lemma share their letters, so a letter of a single lemma occurs about 25 times.
RARE = 50
# More epochs for Turkish, which was the first to be trained. Development errors still fall slowly at the end of a run.
EPOCHS = {"tur": 8.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Forms(AbstractSourceSpec):
    """Lemma, features and form, with single features as tokens."""

    kind: Literal["forms"] = "forms"
    path: str = setting("", "a file with the columns lemma, features and form")

    @override
    def files(self) -> tuple[str, ...]:
        return (self.path,)

    @override
    def read(self) -> Iterator[Example]:
        for example in tsv(self.path, target=2, features=1):
            yield replace(example, features=single_features(example.features))


SPECS = (Forms,)


def single_features(tag: str) -> str:
    """Split combined features, so that each token occurs in many forms.

    Examples:
        >>> single_features("N;IN+ESS(PL)")
        'N;IN;ESS;PL'
    """
    return ";".join(re.findall(r"[^;,+()]+", tag))


def recipe(language: str = "deu") -> Run:
    """Return a run from letters and features to letters with a bidirectional LSTM, copying and an LSTM: two minutes."""
    return Run(
        task=TransductionSpec(
            source=LETTERS,
            target=LETTERS,
            features=FeaturesSpec(),
            min_count=RARE,
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
                decoder=DecoderSpec(
                    embedding_size=128, hidden_size=256, dropout=0.3, bridge="both", copy=True
                ),
            ),
            label_smoothing=0.0,
        ),
        train=part(language, "trn.gz"),
        dev=part(language, "dev"),
        test=part(language, "tst"),
        training=TrainingSpec(
            epochs=EPOCHS.get(language, 6.0),
            batch_size=64,
            learning_rate=2e-3,
            bf16=True,
            evaluate_every=200,
            validation_size=300,
            seed=1,
        ),
    )


(deu, eng, fin, fra, heb, heb_unvoc, hun, ita, jap, kat, rus, spa, tur) = (
    partial(recipe, name) for name in LANGUAGES
)


def part(language: str, name: str) -> Forms:
    """Return one of the three files of a language."""
    return Forms(path=str(DATA / f"inflection_sigmorphon2023/{language}.{name}"))

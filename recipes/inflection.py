"""Inflection: a form from a lemma and features; SIGMORPHON 2023 task 0, twelve languages.

    foveal fit --recipe recipes/inflection.py --out runs/deu        or :fin, :tur, ... any of LANGUAGES
    python -m benchmarks.records fit inflection --runs runs            all of them, three seeds
    python -m benchmarks.records score inflection --runs runs

Each language has 10,000 training forms and 1,000 test forms of other lemmas. Hebrew is trained without vowels
(heb_unvoc) and with vowels (heb). `foveal data get inflection_sigmorphon2023` gets the
data.

Reference: Goldman et al. 2023, SIGMORPHON-UniMorph 2023 shared task 0.
"""

from functools import partial

from foveal.data import CharacterSpec, FeaturesSpec, TabSeparated, tsv
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
LANGUAGES = (
    *("deu", "eng", "fin", "fra", "heb", "heb_unvoc", "hun", "ita"),
    *("jap", "kat", "rus", "spa", "tur"),
)


def recipe(language: str = "deu") -> Run:
    """Return a run from letters and features to letters with a bidirectional LSTM, attention and an LSTM: two minutes."""
    return Run(
        task=TransductionSpec(
            source=CharacterSpec(),
            target=CharacterSpec(),
            features=FeaturesSpec(),
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
                decoder=DecoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
            ),
        ),
        train=part(language, "trn.gz"),
        dev=part(language, "dev"),
        test=part(language, "tst"),
        training=TrainingSpec(epochs=8.0, batch_tokens=1600, learning_rate=2e-3, bf16=True, seed=1),
    )


(deu, eng, fin, fra, heb, heb_unvoc, hun, ita, jap, kat, rus, spa, tur) = (
    partial(recipe, name) for name in LANGUAGES
)


def part(language: str, name: str) -> TabSeparated:
    """Return one of the three files of a language: lemma, features, form."""
    return tsv(DATA / f"inflection_sigmorphon2023/{language}.{name}", target=2, features=1)

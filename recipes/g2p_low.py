"""Pronunciation from 800 words: SIGMORPHON 2021 task 1, the low-resource part, ten languages.

    foveal fit --recipe recipes/g2p_low.py:ice --out runs/ice       or :ady, :gre, ... any of LANGUAGES
    python -m benchmarks.records fit g2p_low --runs runs               all of them, three seeds
    python -m benchmarks.records score g2p_low --runs runs

Maltese is in Latin script, and Welsh is the south-western variety. The recipe contains the settings that `foveal fit`
chose for these files. It stays the same if the defaults change. `foveal data get g2p_sigmorphon2021` gets the data.

Reference: Ashby et al. 2021, results of the second SIGMORPHON shared task on multilingual
grapheme-to-phoneme conversion.
"""

from dataclasses import replace
from functools import partial

from foveal.data import CharacterSpec, TabSeparated, WhitespaceSpec, tsv
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, LatentHardSpec, SegmentSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
LANGUAGES = ("ady", "gre", "ice", "ita", "khm", "lav", "mlt", "rum", "slv", "wel")
FILES = {"mlt": "mlt_latn", "wel": "wel_sw"}
# Khmer has too many combinations of letters and marks: 7 % of those in new words would be unknown.
UNITS = {"khm": CharacterSpec(unit="code_point")}


def recipe(language: str = "ice") -> Run:
    """Return a run from letters to phones with a bidirectional LSTM, exact hard attention and an LSTM: 1-2 minutes."""
    return Run(
        task=TransductionSpec(
            source=UNITS.get(language, CharacterSpec()),
            target=WhitespaceSpec(),
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=64, hidden_size=128, dropout=0.4),
                decoder=DecoderSpec(
                    embedding_size=64, hidden_size=128, dropout=0.4, attention=LatentHardSpec()
                ),
            ),
        ),
        train=part(language, "train"),
        dev=part(language, "dev"),
        test=part(language, "test"),
        training=TrainingSpec(epochs=100.0, batch_tokens=424, learning_rate=2e-3, seed=1),
    )


ady, gre, ice, ita, khm, lav, mlt, rum, slv, wel = (partial(recipe, name) for name in LANGUAGES)


def segment() -> Run:
    """Return the Icelandic run with segment attention (Kim et al. 2017)."""
    run = recipe()
    assert isinstance(run.task, TransductionSpec)
    model = run.task.model
    decoder = replace(model.decoder, attention=SegmentSpec())
    return replace(run, task=replace(run.task, model=replace(model, decoder=decoder)))


def part(language: str, name: str) -> TabSeparated:
    """Return one of the three files of a language; a line has a word, a tab, and its phones separated by spaces."""
    return tsv(DATA / f"g2p_sigmorphon2021/low/{FILES.get(language, language)}_{name}.tsv")

"""Pronunciation from 8,000 words: SIGMORPHON 2021 task 1, the medium-resource part, ten languages.

    foveal fit --recipe recipes/g2p_medium.py:hun --out runs/hun    or :bul, :kor, ... any of LANGUAGES
    python -m benchmarks.records fit g2p_medium --runs runs            all of them, three seeds
    python -m benchmarks.records score g2p_medium --runs runs

The recipe computes in bfloat16; in float32 it takes 1.5 times as long. Armenian is Eastern Armenian, Serbo-Croatian is in
Latin script, Japanese in hiragana, and Vietnamese is the variety of Hanoi. `foveal data get g2p_sigmorphon2021` gets the
data.

Reference: Ashby et al. 2021, results of the second SIGMORPHON shared task on multilingual
grapheme-to-phoneme conversion.
"""

from functools import partial

from foveal.data import CharacterSpec, TabSeparated, WhitespaceSpec, tsv
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
LANGUAGES = ("arm", "bul", "dut", "fre", "geo", "hbs", "hun", "jpn", "kor", "vie")
# A Korean syllable is one character of two or three letters. There are many syllables, so letters are less often
# unknown.
UNITS = {"kor": CharacterSpec(unit="code_point", normalization="NFD")}
FILES = {"arm": "arm_e", "hbs": "hbs_latn", "jpn": "jpn_hira", "vie": "vie_hanoi"}


def recipe(language: str = "hun") -> Run:
    """Return a run from letters to phones with a bidirectional LSTM, attention and an LSTM: about five minutes."""
    return Run(
        task=TransductionSpec(
            source=UNITS.get(language, CharacterSpec()),
            target=WhitespaceSpec(),
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
                decoder=DecoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
            ),
        ),
        train=part(language, "train"),
        dev=part(language, "dev"),
        test=part(language, "test"),
        training=TrainingSpec(
            epochs=25.0, batch_tokens=1200, learning_rate=2e-3, bf16=True, seed=1
        ),
    )


arm, bul, dut, fre, geo, hbs, hun, jpn, kor, vie = (partial(recipe, name) for name in LANGUAGES)


def part(language: str, name: str) -> TabSeparated:
    """Return one of the three files of a language, compressed or not; a line has a word, a tab, and its phones."""
    path = DATA / f"g2p_sigmorphon2021/medium/{FILES.get(language, language)}_{name}.tsv"
    return tsv(path if path.exists() else path.with_name(path.name + ".gz"))

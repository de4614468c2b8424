"""Pronunciation of American English from 33,344 words: SIGMORPHON 2021 task 1, the high-resource part.

    foveal fit --recipe recipes/g2p_english.py --out runs/english
    python -m benchmarks.records fit g2p_english --runs runs           three seeds
    python -m benchmarks.records score g2p_english --runs runs

`foveal data get g2p_sigmorphon2021` gets the data.

Reference: Ashby et al. 2021, results of the second SIGMORPHON shared task on multilingual
grapheme-to-phoneme conversion.
"""

from foveal.data import CharacterSpec, TabSeparated, WhitespaceSpec, tsv
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
LANGUAGES = ("eng_us",)


def recipe(language: str = "eng_us") -> Run:
    """Return a run from letters to phones with a bidirectional LSTM, attention and an LSTM: about ten minutes."""
    return Run(
        task=TransductionSpec(
            source=CharacterSpec(),
            target=WhitespaceSpec(),
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
                decoder=DecoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
            ),
        ),
        train=part(language, "train.tsv.gz"),
        dev=part(language, "dev.tsv"),
        test=part(language, "test.tsv"),
        training=TrainingSpec(
            epochs=15.0, batch_tokens=1600, learning_rate=2e-3, bf16=True, seed=1
        ),
    )


def part(language: str, name: str) -> TabSeparated:
    """Return one of the three files; each line has a word, a tab, and its phones separated by spaces."""
    return tsv(DATA / f"g2p_sigmorphon2021/high/{language}_{name}")

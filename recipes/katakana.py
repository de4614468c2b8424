"""Transliteration: names of people from Latin letters into katakana and five other scripts.

    foveal fit --recipe recipes/katakana.py --out runs/katakana     or :russian, :arabic, ... any of SCRIPTS
    python -m benchmarks.records fit katakana --runs runs              all of them, three seeds
    python -m benchmarks.records score katakana --runs runs

There are 26,406 names (Korean) to 105,371 names (Russian); each word of a name is a separate example. A name can have
several correct spellings, but only the spelling in the file counts, so no system gets all names right. `foveal data get
translit_coling2018` gets the data.

Reference: Merhav and Ash 2018, Design challenges in named entity transliteration.
"""

from functools import partial

from foveal.data import CharacterSpec, TabSeparated, WhitespaceSpec, tsv
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
SCRIPTS = ("katakana", "arabic", "chinese", "hebrew", "korean", "russian")
PARTS = {"train": 64, "dev": 16, "test": 20}  # percentages in the file names
# More names need fewer epochs.
EPOCHS: dict[str, float] = dict(zip(SCRIPTS, (3.0, 4.0, 4.0, 4.0, 5.0, 2.5), strict=True))


def recipe(script: str = "katakana") -> Run:
    """Return a run from letters to characters with a bidirectional LSTM, attention and an LSTM: about three minutes."""
    return Run(
        task=TransductionSpec(
            source=CharacterSpec(),
            target=WhitespaceSpec(),
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
                decoder=DecoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
            ),
        ),
        train=part(script, "train"),
        dev=part(script, "dev"),
        test=part(script, "test"),
        training=TrainingSpec(
            epochs=EPOCHS[script], batch_tokens=1600, learning_rate=2e-3, bf16=True, seed=1
        ),
    )


arabic, chinese, hebrew, korean, russian = (partial(recipe, name) for name in SCRIPTS[1:])


def part(script: str, name: str) -> TabSeparated:
    """Return one of the three files; a line has a name, its characters separated by spaces, and an unused count."""
    return tsv(DATA / f"translit_coling2018/wd_{script}_{PARTS[name]}.gz")

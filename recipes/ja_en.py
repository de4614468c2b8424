"""Translation from Japanese to English: 50,000 short sentences of the Tanaka corpus.

    foveal fit --recipe recipes/ja_en.py --out runs/ja_en           characters to words
    foveal fit --recipe recipes/ja_en.py:words --out runs/words     words to words
    python -m benchmarks.records fit ja_en --runs runs                 three seeds
    python -m benchmarks.records score ja_en --runs runs

The corpus marks the boundaries of Japanese words with spaces. With characters as tokens, the recipe drops these
spaces, because Japanese is written without them. `foveal data get enja_tanaka50k` gets the data.
"""

from functools import partial
from pathlib import Path

from foveal.data import CharacterSpec, Parallel, WhitespaceSpec, parallel
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
SOURCES = {"characters": CharacterSpec(spaces="drop"), "words": WhitespaceSpec()}


def recipe(source: str = "characters") -> Run:
    """Return a run with a bidirectional LSTM, attention and an LSTM: about 20 minutes."""
    return Run(
        task=TransductionSpec(
            source=SOURCES[source],
            target=WhitespaceSpec(),
            outputs="texts",
            min_count=2,
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=256, hidden_size=256, dropout=0.3),
                decoder=DecoderSpec(embedding_size=256, hidden_size=256, dropout=0.3),
            ),
            prediction=PredictionSpec(length_penalty=1.0),
        ),
        train=part("train"),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(epochs=8.0, batch_tokens=2000, learning_rate=2e-3, bf16=True, seed=1),
    )


words = partial(recipe, "words")


def part(name: str) -> Parallel:
    """Return the two files of a part, with one sentence on each line."""
    return parallel(*files(name))


def files(name: str) -> tuple[Path, Path]:
    """Return the paths of the Japanese and the English file."""
    folder, packing = DATA / "enja_tanaka50k", ".gz" if name == "train" else ""
    return folder / f"{name}.ja{packing}", folder / f"{name}.en{packing}"

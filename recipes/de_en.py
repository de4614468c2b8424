"""Translation from German to English: Multi30k, 29,000 captions.

    foveal fit --recipe recipes/de_en.py --out runs/de_en
    python -m benchmarks.records fit de_en --runs runs                 three seeds
    python -m benchmarks.records score de_en --runs runs

The captions are for research only, and Foveal does not distribute them. `foveal data get multi30k` gets them from
github.com/multi30k/dataset (data/task1/tok: lowercase, tokenized).

Reference: Elliott et al. 2016, Multi30K: multilingual English-German image descriptions.
"""

from foveal.data import Parallel, WhitespaceSpec, parallel
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
TESTS = ("test_2016_flickr",)


def recipe(test: str = "test_2016_flickr") -> Run:
    """Return a run with a bidirectional LSTM, attention and an LSTM: about 20 minutes."""
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(),
            target=WhitespaceSpec(),
            outputs="texts",
            min_count=2,
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=256, hidden_size=256, dropout=0.4),
                decoder=DecoderSpec(embedding_size=256, hidden_size=256, dropout=0.4),
            ),
            prediction=PredictionSpec(length_penalty=1.0),
        ),
        train=part("train", ".gz"),
        dev=part("val"),
        test=part(test),
        training=TrainingSpec(
            epochs=10.0, batch_tokens=2000, learning_rate=2e-3, bf16=True, seed=1
        ),
    )


def part(name: str, packing: str = "") -> Parallel:
    """Return the two files of a part, with one caption on each line."""
    german, english = (
        DATA / f"multi30k/tok/{name}.lc.norm.tok.{language}{packing}" for language in ("de", "en")
    )
    return parallel(german, english)

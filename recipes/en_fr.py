"""Translation from English to French with and without attention, which is trained until it stops improving.

    foveal fit --recipe recipes/en_fr.py --out runs/en_fr                         or :none
    python -m benchmarks.lectures fit en_fr --runs runs --seeds 1
    python -m benchmarks.lectures score en_fr --runs runs --seeds 1

    attention    softmax over the words of the source
    none         the decoder reads the summary of the source at every step and in its initial state

Both read the source from both ends with 256 units in each direction, and have 256 units in the decoder. The model
with attention gets 5 epochs. The model without attention gets up to 16, and ends after four validations without a
better BLEU on development captions. The 29,000 captions of Multi30k are for
research only, and Foveal does not distribute them. `foveal data get multi30k` gets them from
github.com/multi30k/dataset (data/task1/tok: lowercase, tokenized).

Reference: Bahdanau et al. 2015, figure 2; Elliott et al. 2017 (French).
"""

from functools import partial
from typing import Any

from foveal.data import Parallel, WhitespaceSpec, parallel
from foveal.datasets import data_folder
from foveal.models import DecoderSpec, Seq2SeqSpec, SoftmaxSpec, TextEncoderSpec
from foveal.tasks import PredictionSpec, TransductionSpec
from foveal.training import Run, TrainingSpec

DATA = data_folder()
READING: dict[str, dict[str, Any]] = {
    "attention": {"attention": SoftmaxSpec()},
    "none": {"attention": None, "bridge": "both"},
}
EPOCHS = {"attention": 5.0, "none": 16.0}
CASES = tuple(READING)


def recipe(case: str = "attention") -> Run:
    """Return a run of about ten minutes with attention, and of half an hour without."""
    return Run(
        task=TransductionSpec(
            source=WhitespaceSpec(),
            target=WhitespaceSpec(),
            outputs="texts",
            min_count=3,
            model=Seq2SeqSpec(
                encoder=TextEncoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
                decoder=DecoderSpec(
                    embedding_size=128, hidden_size=256, dropout=0.3, **READING[case]
                ),
            ),
            prediction=PredictionSpec(length_penalty=1.0),
        ),
        train=part("train", ".gz"),
        dev=part("val"),
        test=part("test_2016_flickr"),
        training=TrainingSpec(
            epochs=EPOCHS[case],
            batch_tokens=2000,
            learning_rate=2e-3,
            patience=4,
            evaluate_every=300,
            validation_size=300,
            bf16=True,
            seed=1,
        ),
    )


attention, none = (partial(recipe, case) for case in CASES)


def part(name: str, packing: str = "") -> Parallel:
    """Return the two files of a part, with one caption on each line."""
    english, french = (
        DATA / f"multi30k/tok/{name}.lc.norm.tok.{language}{packing}" for language in ("en", "fr")
    )
    return parallel(english, french)

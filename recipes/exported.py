"""The models that `python -m benchmarks.exporting` exports: small ones of every kind, without records in mind.

    foveal fit --recipe recipes/exported.py:ice --out runs/ice        or :hun, :bul, ... any of CASES
    python -m benchmarks.exporting fit --runs runs                    all of them

Pronunciation (Icelandic with marginalized hard attention, Hungarian with softmax, Bulgarian with marginalized monotone
attention), names in katakana, Turkish inflection with copying, part-of-speech tags, and translation from Japanese. They
compute in float32.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from foveal.data import FeaturesSpec, SpellingSpec, conllu, tsv
from foveal.datasets import data_folder
from foveal.models import (
    DecoderSpec,
    LatentMonotoneSpec,
    Seq2SeqSpec,
    TaggerSpec,
    TextEncoderSpec,
)
from foveal.tasks import TaggingSpec, TransductionSpec
from foveal.training import Run, TrainingSpec
from recipes import g2p_low, g2p_medium, ja_en, katakana

DATA = data_folder()
CASES = ("ice", "hun", "bul", "katakana", "tur", "tagger", "ja_en")


def recipe(case: str = "ice") -> Run:
    """Return the run of a case."""
    match case:
        case "hun":
            return shorter(g2p_medium.recipe("hun"), 12.0)
        case "bul":
            return shorter(g2p_medium.recipe("bul"), 12.0, attention=LatentMonotoneSpec())
        case "katakana":
            return shorter(katakana.recipe(), 1.0)
        case "tur":
            return turkish()
        case "tagger":
            return tagging()
        case "ja_en":
            return shorter(ja_en.words(), 6.0, embedding_size=192, hidden_size=192)
        case language:
            return g2p_low.recipe(language)


ice, hun, bul, tur, tagger = (
    partial(recipe, name) for name in ("ice", "hun", "bul", "tur", "tagger")
)


def shorter(run: Run, epochs: float, **decoder: Any) -> Run:
    """Return a run with fewer epochs in float32, and other settings of its decoder; widths are also the encoder's."""
    assert isinstance(run.task, TransductionSpec)
    model = run.task.model
    assert isinstance(model.decoder, DecoderSpec)
    widths = {name: each for name, each in decoder.items() if name.endswith("_size")}
    model = replace(
        model,
        encoder=replace(model.encoder, **widths),
        decoder=replace(model.decoder, **decoder),
    )
    training = replace(run.training, epochs=epochs, bf16=False)
    return replace(run, task=replace(run.task, model=model), training=training)


def turkish() -> Run:
    """Return a run for Turkish inflection: a bidirectional LSTM, attention, and an LSTM that copies letters."""
    train, dev, test = (
        tsv(DATA / f"inflection_sigmorphon2023/tur.{part}", target=2, features=1)
        for part in ("trn.gz", "dev", "tst")
    )
    model = Seq2SeqSpec(
        encoder=TextEncoderSpec(embedding_size=128, hidden_size=256, dropout=0.3),
        decoder=DecoderSpec(embedding_size=128, hidden_size=256, dropout=0.3, copy=True),
    )
    task = TransductionSpec(features=FeaturesSpec(), model=model)
    training = TrainingSpec(epochs=8.0, batch_tokens=1600, learning_rate=2e-3, seed=1)
    return Run(task=task, train=train, dev=dev, test=test, training=training)


def tagging() -> Run:
    """Return a run for part-of-speech tags of UD English EWT: a bidirectional LSTM and a linear-chain CRF."""
    train, dev, test = (
        conllu(DATA / f"ud_english_ewt/en_ewt-ud-{part}.conllu.gz")
        for part in ("train", "dev", "test")
    )
    encoder = TextEncoderSpec(embedding_size=64, hidden_size=128, dropout=0.5)
    task = TaggingSpec(
        model=TaggerSpec(encoder=encoder), spelling=SpellingSpec(), min_count=2, word_dropout=0.1
    )
    training = TrainingSpec(epochs=4.0, batch_tokens=1000, learning_rate=4e-3, seed=1)
    return Run(task=task, train=train, dev=dev, test=test, training=training)

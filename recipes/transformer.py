"""A Transformer next to the LSTM: pronunciation and inflection.

    foveal fit --recipe recipes/transformer.py:bul_transformer --out runs/bul_transformer
    python -m benchmarks.lectures fit transformer_models --runs runs          all cases, three seeds
    python -m benchmarks.lectures score transformer_models --runs runs

Each case is the recipe of its corpus: with its LSTM, with a small Transformer (two layers of width 128 in encoder and
decoder), or with a Transformer in which one of the four heads of each layer of the decoder reads the source by segments. Data,
epochs and search are those of the corpus. The Transformers have half the learning rate and a warmup; no setting was tuned.
Bulgarian and Dutch have 8,000 words, Turkish inflection has 10,000 forms.

References: Wu et al. 2021 (a Transformer for character-level transduction), Kim et al. 2017 (segments).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from foveal.data import CharacterSpec, FeaturesSpec, TabSeparated, tsv
from foveal.models import (
    DecoderSpec,
    HeadsSpec,
    SegmentSpec,
    Seq2SeqSpec,
    TextEncoderSpec,
    TransformerDecoderSpec,
    TransformerEncoderSpec,
)
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec
from recipes import g2p_medium
from recipes.inflection import DATA


def turkish() -> Run:
    """Return the run for Turkish inflection, with an LSTM that does not copy: neither do the Transformers here."""
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
        train=_turkish_part("trn.gz"),
        dev=_turkish_part("dev"),
        test=_turkish_part("tst"),
        training=TrainingSpec(epochs=8.0, batch_tokens=1600, learning_rate=2e-3, bf16=True, seed=1),
    )


def _turkish_part(name: str) -> TabSeparated:
    """Return one of the three files: lemma, features, form."""
    return tsv(DATA / f"inflection_sigmorphon2023/tur.{name}", target=2, features=1)


CORPORA: dict[str, Callable[[], Run]] = {
    "bul": g2p_medium.bul,
    "dut": g2p_medium.dut,
    "tur": turkish,
}
FORMS: dict[str, tuple[HeadsSpec, ...] | None] = {
    "lstm": None,
    "transformer": (),
    "segments": (HeadsSpec(attention=SegmentSpec()),),
}
CASES = tuple(f"{corpus}_{form}" for corpus in CORPORA for form in FORMS)


def recipe(case: str = "bul_transformer") -> Run:
    """Return the recipe of a corpus, with the model of a form."""
    corpus, _, form = case.rpartition("_")
    run, heads = CORPORA[corpus](), FORMS[form]
    if heads is None:
        return run
    assert isinstance(run.task, TransductionSpec)
    model = Seq2SeqSpec(
        encoder=TransformerEncoderSpec(positions="sinusoidal", dropout=0.2),
        decoder=TransformerDecoderSpec(positions="sinusoidal", dropout=0.2, special_heads=heads),
    )
    # In layers this narrow, bfloat16 is slower than float32.
    training = replace(run.training, learning_rate=1e-3, warmup_steps=200, bf16=False)
    return replace(run, task=replace(run.task, model=model), training=training)


bul_lstm, bul_transformer, bul_segments = (partial(recipe, f"bul_{form}") for form in FORMS)
dut_lstm, dut_transformer, dut_segments = (partial(recipe, f"dut_{form}") for form in FORMS)
tur_lstm, tur_transformer, tur_segments = (partial(recipe, f"tur_{form}") for form in FORMS)

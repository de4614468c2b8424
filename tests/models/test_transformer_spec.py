"""TransformerEncoderSpec as JSON, with single settings, with custom heads, and in every model."""

import pytest
import torch

from foveal.data import Example, SpellingSpec
from foveal.errors import SpecError, ValueRangeError
from foveal.models import (
    DotSpec,
    EncoderSpec,
    HeadsSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SparsemaxSpec,
    TaggerSpec,
    TransformerEncoderSpec,
)
from foveal.networks import TransformerEncoder
from foveal.specs import from_json, to_json, with_setting
from foveal.tasks import TaggingSpec
from tests.tasks.tiny import train

TREE = HeadsSpec(layers=(1,))
SEGMENTS = HeadsSpec(attention=SegmentSpec(scorer=DotSpec()), num_heads=2)


def test_a_spec_reads_back() -> None:
    spec = TransformerEncoderSpec(
        model_size=24, num_heads=4, positions="learned", special_heads=(TREE, SEGMENTS)
    )
    assert from_json(EncoderSpec, to_json(spec, EncoderSpec)) == spec


def test_single_settings_choose_a_transformer_and_its_heads() -> None:
    spec = with_setting(Seq2SeqSpec(), "encoder", "transformer")
    spec = with_setting(spec, "encoder.positions", "sinusoidal")
    spec = with_setting(spec, "encoder.attention", "sparsemax")
    heads = '[{"attention": {"kind": "segment"}, "layers": [2]}]'
    spec = with_setting(spec, "encoder.special_heads", heads)
    spec = with_setting(spec, "encoder.special_heads.0.num_heads", "3")
    assert spec.encoder == TransformerEncoderSpec(
        positions="sinusoidal",
        attention=SparsemaxSpec(),
        special_heads=(HeadsSpec(attention=SegmentSpec(), layers=(2,), num_heads=3),),
    )
    with pytest.raises(SpecError, match="rotary, learned or sinusoidal"):
        with_setting(spec, "encoder.positions", "rotated")


def test_special_heads_come_first_in_their_layers() -> None:
    spec = TransformerEncoderSpec(model_size=16, num_heads=4, special_heads=(TREE, SEGMENTS))
    assert spec.attention_kinds == ("syntactic", "segment", "softmax", "segment", "softmax")
    encoder = spec.build(9)
    assert isinstance(encoder, TransformerEncoder)
    found = encoder.self_attentions(torch.randint(9, (3, 5)))
    assert [each.weights.shape[1] for each in found] == [1, 2, 1, 2, 2]


def test_heads_that_do_not_fit_are_refused_in_words() -> None:
    many = TransformerEncoderSpec(num_heads=2, special_heads=(TREE, SEGMENTS))
    with pytest.raises(ValueRangeError, match="layer 1 has 2 heads, got 3 special_heads"):
        many.build(9)
    deep = TransformerEncoderSpec(special_heads=(HeadsSpec(layers=(1, 3)),))
    with pytest.raises(ValueRangeError, match="layers from 1 to 2, got 3"):
        deep.build(9)


def test_a_tagger_with_spelling_features_learns() -> None:
    """The tag of a word is the previous word: the model needs order and attention.

    Vectors of words with features are wider than the model, and a linear layer projects them.
    """
    torch.manual_seed(0)
    words = torch.randint(3, (60, 5)).tolist()
    examples = [
        Example(" ".join("abc"[w] for w in text), " ".join(f"T{w}" for w in [0, *text[:-1]]))
        for text in words
    ]
    encoder = TransformerEncoderSpec(model_size=16, num_heads=2, dropout=0.0)
    model = TaggerSpec(encoder=encoder, crf=False)
    spec = TaggingSpec(model=model, word_dropout=0.0, spelling=SpellingSpec(num_buckets=50))
    task = spec.build_from(examples)
    train(task, examples, epochs=30, rate=1e-2, batch_size=20)
    task.model.eval()
    assert task.evaluate(examples).value >= 98

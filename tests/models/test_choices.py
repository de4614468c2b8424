"""With any settings of a user, a spec builds a model that runs, or raises a readable error."""

from contextlib import suppress
from typing import Any

import pytest
import torch
from hypothesis import given, settings as run_settings, strategies as st

from foveal.errors import FovealError, ShapeError, SpecError
from foveal.models import (
    ClassifierSpec,
    DecoderSpec,
    DecomposableAttentionSpec,
    DocumentEncoderSpec,
    MemoryNetworkSpec,
    Seq2SeqSpec,
    TaggerSpec,
    TextEncoderSpec,
    WordEncoderSpec,
)
from foveal.specs import settings, with_setting

pytestmark = pytest.mark.slow

TEXT = TextEncoderSpec(embedding_size=4, hidden_size=3)
WORDS = WordEncoderSpec(embedding_size=4)
DECODER = DecoderSpec(embedding_size=4, hidden_size=6)
TOKENS = torch.tensor([[1, 2, 3], [4, 4, 4]])
MASK = torch.tensor([[True, True, True], [True, False, False]])
HEADS = torch.tensor([[2, 0, 2], [0, 0, 0]])  # positions counted from 1
FACTS = torch.tensor([[[1, 2], [3, 4]], [[2, 2], [1, 0]]])

MODELS: dict[str, tuple[Any, dict[str, int], tuple[Any, ...]]] = {
    "seq2seq": (
        Seq2SeqSpec(encoder=TEXT, decoder=DECODER),
        {"source_vocabulary": 5, "target_vocabulary": 5},
        (TOKENS, MASK, TOKENS, MASK),
    ),
    "classifier": (
        ClassifierSpec(encoder=TEXT),
        {"vocabulary": 5, "num_classes": 2},
        (TOKENS, MASK),
    ),
    "tagger": (TaggerSpec(encoder=WORDS), {"vocabulary": 5, "num_tags": 2}, (TOKENS, MASK)),
    "matcher": (
        DecomposableAttentionSpec(encoder=WORDS, hidden_size=6),
        {"vocabulary": 5, "num_classes": 2},
        (TOKENS, MASK, TOKENS, MASK),
    ),
    "reader": (
        MemoryNetworkSpec(),
        {"vocabulary": 5, "num_answers": 2},
        (FACTS, None, TOKENS, MASK),
    ),
}
FIXED = {"max_facts"}  # by the data above


@pytest.mark.parametrize("name", MODELS)
@run_settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_choice_runs_or_is_refused_in_words(name: str, data: st.DataObject) -> None:
    spec, sizes, inputs = MODELS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        free = [one for one in settings(spec) if one.path not in FIXED]
        chosen = data.draw(st.sampled_from(free))
        words = chosen.expected.replace(",", "").split()  # kinds and literals are among them
        text = data.draw(st.sampled_from([*words, "none", "true", "false", "0", "1", "2", "0.5"]))
        with suppress(SpecError):
            spec = with_setting(spec, chosen.path, text)
    try:
        model = spec.build(**sizes)
    except FovealError:
        return
    model.eval()
    if isinstance(getattr(spec, "encoder", None), DocumentEncoderSpec):
        inputs = FACTS, None, *inputs[2:]  # sentences of words
    if isinstance(spec, DecomposableAttentionSpec) and spec.reads_heads:
        inputs = (*inputs, (HEADS, HEADS))
    if not data.draw(st.booleans()):
        model(*inputs)
    else:  # without padding
        model(*(None if part is MASK else part for part in inputs))


def test_a_classifier_is_told_which_axes_are_missing() -> None:
    document = ClassifierSpec(encoder=DocumentEncoderSpec()).build(vocabulary=5, num_classes=2)
    with pytest.raises(ShapeError, match=r"shape \(B, n, w\), got \(2, 3\)"):
        document(TOKENS, MASK)
    text = ClassifierSpec(encoder=TEXT).build(vocabulary=5, num_classes=2)
    with pytest.raises(ShapeError, match=r"shape \(B, S\), got \(2, 2, 2\)"):
        text(FACTS)


def test_a_seq2seq_model_is_told_which_axes_are_missing() -> None:
    sizes = {"source_vocabulary": 5, "target_vocabulary": 5}
    document = Seq2SeqSpec(encoder=DocumentEncoderSpec()).build(**sizes)
    with pytest.raises(ShapeError, match=r"source must have shape \(B, n, w\), got \(2, 3\)"):
        document(TOKENS, MASK, TOKENS)
    with pytest.raises(ShapeError, match=r"source must have shape \(B, S\), got \(2, 2, 2\)"):
        Seq2SeqSpec().build(**sizes)(FACTS, None, TOKENS)

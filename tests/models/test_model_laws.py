"""Every model obeys the laws, with every setting of its spec that changes the architecture."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch

from foveal.models import (
    AdditiveSpec,
    AttentiveReaderSpec,
    BilinearSpec,
    BracketedEncoderSpec,
    CaptionerSpec,
    ChainStepsSpec,
    ClassifierSpec,
    ConvolutionalEncoderSpec,
    DecoderSpec,
    DecomposableAttentionSpec,
    DocumentEncoderSpec,
    DotSpec,
    FramesEncoderSpec,
    HardSpec,
    HeadSelectionSpec,
    HeadsSpec,
    ImageClassifierSpec,
    ImageEncoderSpec,
    LanguageModelSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    LinearSpec,
    LocalSpec,
    MemoryNetworkSpec,
    MultiHeadSpec,
    RecurrentSpec,
    RecursiveEncoderSpec,
    SegmentSpec,
    Seq2SeqSpec,
    SigmoidSpec,
    SoftmaxSpec,
    SoftStepsSpec,
    SparsemaxSpec,
    SyntacticSpec,
    TaggerSpec,
    TextEncoderSpec,
    TransformerEncoderSpec,
    TransformerLanguageModelSpec,
    WordByWordSpec,
    WordEncoderSpec,
)
from foveal.models.parts._vision_specs import VectorFrameSpec
from foveal.specs import from_json, to_json
from foveal.testing import check_model

pytestmark = pytest.mark.slow

TEXT = TextEncoderSpec(embedding_size=5, hidden_size=3)
STATES = RecurrentSpec(hidden_size=3)
TRANSFORMER = TransformerEncoderSpec(model_size=8, num_heads=2, feed_forward_size=6)
RECURSIVE = RecursiveEncoderSpec(embedding_size=5, hidden_size=6)
BRACKETED = BracketedEncoderSpec(embedding_size=5, hidden_size=6)
CONVOLUTIONAL = ConvolutionalEncoderSpec(embedding_size=5, size=6, num_layers=2)


def decoder(**choices: Any) -> DecoderSpec:
    return DecoderSpec(embedding_size=5, hidden_size=6, **choices)


def seq2seq(encoder: Any = TEXT, **choices: Any) -> Seq2SeqSpec:
    return Seq2SeqSpec(encoder=encoder, decoder=decoder(**choices))


SEQ2SEQ = {
    "softmax": seq2seq(),
    "softmax, additive 4": seq2seq(attention=SoftmaxSpec(scorer=AdditiveSpec(hidden_size=4))),
    "softmax, dot": seq2seq(attention=SoftmaxSpec(scorer=DotSpec())),
    "softmax, bilinear": seq2seq(attention=SoftmaxSpec(scorer=BilinearSpec())),
    "sigmoid, linear": seq2seq(attention=SigmoidSpec(scorer=LinearSpec())),
    "segment": seq2seq(attention=SegmentSpec()),
    "segment, total 2": seq2seq(attention=SegmentSpec(total=2.0)),
    "local": seq2seq(attention=LocalSpec(window=2.0)),
    "sparsemax": seq2seq(attention=SparsemaxSpec()),
    "hard": seq2seq(attention=HardSpec()),
    "exact hard": seq2seq(attention=LatentHardSpec()),
    "exact hard, tied": seq2seq(attention=LatentHardSpec(scorer=DotSpec()), tie_embeddings=True),
    "monotone": seq2seq(attention=LatentMonotoneSpec()),
    "monotone, every step": seq2seq(
        attention=LatentMonotoneSpec(scorer=BilinearSpec()),
        bridge="every_step",
        cell="gru",
        skip=True,
    ),
    "heads": seq2seq(attention=MultiHeadSpec(num_heads=2)),
    "heads, segment": seq2seq(attention=MultiHeadSpec(num_heads=3, attention=SegmentSpec())),
    "no attention": seq2seq(attention=None),
    "input feeding": seq2seq(input_feeding=True),
    "input feeding, tied": seq2seq(input_feeding=True, tie_embeddings=True, bridge="both"),
    "before": seq2seq(attend="before"),
    "before, segment, deep": seq2seq(
        attend="before", attention=SegmentSpec(), deep_output=True, tie_embeddings=True
    ),
    "before, heads": seq2seq(attend="before", attention=MultiHeadSpec(num_heads=2), bridge="both"),
    "before, learned state": seq2seq(
        attend="before", bridge="learned", cell="gru", num_layers=2, skip=True
    ),
    "learned state": seq2seq(bridge="learned"),
    "copy": seq2seq(copy=True),
    "copy, before, heads": seq2seq(
        copy=True, attend="before", attention=MultiHeadSpec(num_heads=2)
    ),
    "tie_embeddings": seq2seq(tie_embeddings=True),
    "every step": seq2seq(bridge="every_step", num_layers=2, residual=True),
    "both ways": seq2seq(bridge="both", cell="gru", num_layers=2, skip=True),
    "no bridge": seq2seq(bridge="none", cell="elman"),
    "syntactic": seq2seq(TextEncoderSpec(hidden_size=3, self_attention=SyntacticSpec())),
    "words": seq2seq(WordEncoderSpec(embedding_size=4)),
    "words, syntactic": seq2seq(
        WordEncoderSpec(embedding_size=4, self_attention=SyntacticSpec(), states=STATES)
    ),
    "words, softmax": seq2seq(WordEncoderSpec(embedding_size=4, self_attention=SoftmaxSpec())),
    "learned states": seq2seq(
        replace(TEXT, learned_state=True, cell="logistic"), bridge="learned", cell="textbook_gru"
    ),
    "convolutional": seq2seq(CONVOLUTIONAL),
    "transformer": seq2seq(TRANSFORMER),
    "transformer, learned": seq2seq(replace(TRANSFORMER, positions="learned", max_positions=5)),
    "transformer, sinusoidal": seq2seq(replace(TRANSFORMER, positions="sinusoidal")),
    "transformer, segments": seq2seq(replace(TRANSFORMER, attention=SegmentSpec())),
    "transformer, one tree": seq2seq(replace(TRANSFORMER, special_heads=(HeadsSpec(layers=(2,)),))),
}
CLASSIFIERS = {
    "attention": ClassifierSpec(encoder=TEXT),
    "summary": ClassifierSpec(encoder=TEXT, pooling="summary"),
    "mean": ClassifierSpec(encoder=TEXT, pooling="mean"),
    "max": ClassifierSpec(encoder=TEXT, pooling="max"),
    "segment": ClassifierSpec(encoder=TEXT, pooling=SegmentSpec()),
    "words, summary": ClassifierSpec(encoder=WordEncoderSpec(embedding_size=4), pooling="summary"),
    "convolutional": ClassifierSpec(encoder=CONVOLUTIONAL, pooling="max"),
    "recursive": ClassifierSpec(encoder=RECURSIVE),
    "bracketed": ClassifierSpec(encoder=BRACKETED),
    "bracketed, summary": ClassifierSpec(encoder=BRACKETED, pooling="summary"),
    "transformer": ClassifierSpec(encoder=TRANSFORMER),
    "transformer, summary": ClassifierSpec(encoder=TRANSFORMER, pooling="summary"),
}
DOCUMENTS = {
    "two levels": DocumentEncoderSpec(words=TEXT, sentences=STATES),
    "one level": DocumentEncoderSpec(words=TEXT, sentences=STATES, pooling=None),
    "transformer": DocumentEncoderSpec(words=TRANSFORMER, sentences=STATES),
}
MATCHERS = {
    "decomposable": WordEncoderSpec(embedding_size=4),
    "syntactic": WordEncoderSpec(
        embedding_size=4, self_attention=SyntacticSpec(single_root=False), states=STATES
    ),
    "children": WordEncoderSpec(embedding_size=4, self_attention=SyntacticSpec(read="children")),
    "head selection": WordEncoderSpec(
        embedding_size=4, self_attention=HeadSelectionSpec(), states=STATES
    ),
    "recurrent": TEXT,
    "transformer": TRANSFORMER,
}
STEPS = {"soft": SoftStepsSpec(), "chain": ChainStepsSpec(), "repeat": ChainStepsSpec(repeat=True)}
FRAMES = {
    "vectors": FramesEncoderSpec(frame=VectorFrameSpec(input_size=5, size=4), hidden_size=3),
    "images": FramesEncoderSpec(
        frame=ImageEncoderSpec(num_channels=1, sizes=(3, 4)), hidden_size=3
    ),
    "regions": FramesEncoderSpec(
        frame=ImageEncoderSpec(num_channels=1, sizes=(3, 4)), hidden_size=3, regions=2
    ),
}
READERS: dict[str, WordByWordSpec | AttentiveReaderSpec] = {
    "every word": WordByWordSpec(embedding_size=4, hidden_size=5),
    "every word, segments": WordByWordSpec(
        embedding_size=4, hidden_size=5, cell="gru", num_layers=2, attention=SegmentSpec()
    ),
    "last word": WordByWordSpec(embedding_size=4, hidden_size=5, readers="last_word"),
    "conditional encoding": WordByWordSpec(embedding_size=4, hidden_size=5, readers="nothing"),
    "attentive reader": AttentiveReaderSpec(encoder=TEXT, hidden_size=5),
    "reader of words": AttentiveReaderSpec(encoder=WordEncoderSpec(embedding_size=4)),
    "summaries": AttentiveReaderSpec(encoder=TEXT, attention=None, hidden_size=5),
}
SIZES = {
    "seq2seq": {"source_vocabulary": 9, "target_vocabulary": 7},
    "classifier": {"vocabulary": 9, "num_classes": 3},
    "decomposable_attention": {"vocabulary": 9, "num_classes": 3},
    "word_by_word": {"vocabulary": 9, "num_classes": 3},
    "attentive_reader": {"vocabulary": 9, "num_classes": 3},
    "memory_network": {"vocabulary": 9, "num_answers": 3},
    "captioner": {"vocabulary": 7},
    "language_model": {"vocabulary": 9},
    "transformer": {"vocabulary": 9},
    "tagger": {"vocabulary": 9, "num_tags": 3},
}


def sizes_of(spec: Any) -> dict[str, int]:
    """Return the vocabulary sizes for a model; a model that copies has one vocabulary."""
    sizes = SIZES[spec.kind]
    copies = isinstance(spec, Seq2SeqSpec) and spec.decoder.copies
    return sizes | {"target_vocabulary": 9} if copies else sizes


ALL_SPECS: list[Any] = [
    *SEQ2SEQ.values(),
    *CLASSIFIERS.values(),
    *(ClassifierSpec(encoder=each) for each in DOCUMENTS.values()),
    *(DecomposableAttentionSpec(encoder=each) for each in MATCHERS.values()),
    *READERS.values(),
    *(MemoryNetworkSpec(steps=each) for each in STEPS.values()),
    MemoryNetworkSpec(steps=ChainStepsSpec(), tying="adjacent"),
    *(CaptionerSpec(encoder=each, decoder=decoder()) for each in FRAMES.values()),
    LanguageModelSpec(embedding_size=6, hidden_size=6, tie_embeddings=True),
    LanguageModelSpec(embedding_size=6, hidden_size=6, learned_state=True, cell="textbook_gru"),
    TransformerLanguageModelSpec(model_size=8, num_heads=2, tie_embeddings=True),
    TaggerSpec(encoder=TEXT),
    TaggerSpec(encoder=TEXT, crf=False),
    TaggerSpec(encoder=TRANSFORMER),
]


def tokens(*shape: int, below: int = 9) -> torch.Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(len(shape)))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", SEQ2SEQ)
def test_a_seq2seq_obeys_the_laws(name: str) -> None:
    sizes = sizes_of(SEQ2SEQ[name])
    model, below = SEQ2SEQ[name].build(**sizes), sizes["target_vocabulary"]
    check_model(model, tokens(4, 5), tokens(4, 3, below=below), aligned=1)


def test_a_seq2seq_that_points_obeys_the_laws() -> None:
    model = seq2seq(point=True).build(source_vocabulary=9, target_vocabulary=9)
    # A token that does not occur in the source has the log-probability -inf.
    check_model(
        model, tokens(4, 5), tokens(4, 3), aligned=1, result=lambda output: output.log_probs.exp()
    )


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_obeys_the_laws(name: str) -> None:
    check_model(CLASSIFIERS[name].build(vocabulary=9, num_classes=3), tokens(4, 5))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_classifier_of_documents_obeys_the_laws(name: str) -> None:
    spec = ClassifierSpec(encoder=DOCUMENTS[name])
    check_model(spec.build(vocabulary=9, num_classes=3), tokens(4, 3, 5))


@pytest.mark.parametrize(
    "spec",
    [
        TaggerSpec(encoder=TEXT),
        TaggerSpec(encoder=TEXT, crf=False),
        TaggerSpec(encoder=TRANSFORMER),
    ],
    ids=["crf", "no crf", "transformer"],
)
def test_a_tagger_obeys_the_laws(spec: TaggerSpec) -> None:
    check_model(
        spec.build(vocabulary=9, num_tags=3),
        tokens(4, 5),
        result=lambda d: d.marginals(),
        aligned=0,
    )


@pytest.mark.parametrize("tie_embeddings", [True, False])
def test_a_language_model_obeys_the_laws(tie_embeddings: bool) -> None:
    spec = LanguageModelSpec(
        embedding_size=6, hidden_size=6, num_layers=2, tie_embeddings=tie_embeddings
    )
    check_model(spec.build(vocabulary=9), tokens(4, 5), aligned=0)


@pytest.mark.parametrize("name", MATCHERS)
def test_a_pair_matcher_obeys_the_laws(name: str) -> None:
    spec = DecomposableAttentionSpec(encoder=MATCHERS[name], hidden_size=40)
    check_model(spec.build(vocabulary=9, num_classes=3), tokens(4, 5), tokens(4, 3))


@pytest.mark.parametrize("name", READERS)
def test_a_reader_of_the_first_text_obeys_the_laws(name: str) -> None:
    model = READERS[name].build(vocabulary=9, num_classes=3)
    check_model(model, tokens(4, 5), tokens(4, 3))


@pytest.mark.parametrize("tying", ["layer_wise", "adjacent"])
@pytest.mark.parametrize("name", STEPS)
def test_a_memory_reader_obeys_the_laws(
    name: str, tying: Literal["layer_wise", "adjacent"]
) -> None:
    spec = MemoryNetworkSpec(steps=STEPS[name], num_steps=3, tying=tying)
    check_model(spec.build(vocabulary=9, num_answers=3), tokens(4, 5, 3), tokens(4, 4))


def test_a_captioner_obeys_the_laws() -> None:
    encoder = ImageEncoderSpec(num_channels=2, sizes=(3, 4))
    spec = CaptionerSpec(encoder=encoder, decoder=decoder())
    check_model(spec.build(vocabulary=7), torch.rand(4, 2, 9, 11), tokens(4, 3, below=7), aligned=1)


@pytest.mark.parametrize("pooling", ["mean", SoftmaxSpec()])
def test_an_image_classifier_obeys_the_laws(pooling: Any) -> None:
    encoder = ImageEncoderSpec(num_channels=2, sizes=(3, 4), blocks=1)
    spec = ImageClassifierSpec(encoder=encoder, pooling=pooling)
    check_model(spec.build(num_classes=3), torch.rand(4, 2, 9, 11))


@pytest.mark.parametrize(
    ("name", "source"),
    [("vectors", lambda: torch.rand(4, 6, 5)), ("images", lambda: torch.rand(4, 3, 1, 8, 9))],
)
def test_a_captioner_of_frames_obeys_the_laws(
    name: str, source: Callable[[], torch.Tensor]
) -> None:
    spec = CaptionerSpec(encoder=FRAMES[name], decoder=decoder())
    check_model(spec.build(vocabulary=7), source(), tokens(4, 3, below=7), aligned=1)


@pytest.mark.parametrize("spec", ALL_SPECS, ids=lambda spec: spec.kind)
def test_a_spec_read_back_builds_the_same_model(spec: Any) -> None:
    again = from_json(type(spec), to_json(spec))
    assert again == spec
    shapes = [
        {name: part.shape for name, part in each.build(**sizes_of(spec)).state_dict().items()}
        for each in (spec, again)
    ]
    assert shapes[0] == shapes[1]
    assert shapes[0]


@pytest.mark.parametrize("spec", ALL_SPECS, ids=lambda spec: spec.kind)
def test_weights_are_stored_once_each(spec: Any) -> None:
    """A file of weights stores each tensor under one name, which safetensors requires."""
    parts = spec.build(**sizes_of(spec)).state_dict().values()
    assert len({part.data_ptr() for part in parts if part.numel()}) == len(list(parts))

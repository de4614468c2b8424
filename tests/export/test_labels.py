"""Graphs of taggers and classifiers give the scores of the library."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np
import pytest
import torch
from torch import nn
from typing_extensions import override

from foveal.bundles import save_bundle
from foveal.data import Example, SpellingSpec
from foveal.distributions import LinearChain
from foveal.errors import ExportError
from foveal.export import ExportOptions, Source, Value, Weights, emit_tagger, export_bundle, op
from foveal.export._labels import crf_of
from foveal.export.graphs._graph import linear
from foveal.models import (
    AbstractTaggerSpec,
    BilinearSpec,
    BracketedEncoderSpec,
    ClassifierSpec,
    ConvolutionalEncoderSpec,
    DocumentEncoderSpec,
    DotSpec,
    HardSpec,
    LinearSpec,
    LocalSpec,
    PathSpec,
    RecursiveEncoderSpec,
    SegmentSpec,
    SigmoidSpec,
    SoftmaxSpec,
    SparsemaxSpec,
    SyntacticSpec,
    TaggerSpec,
    TextEncoderSpec,
    TransformerEncoderSpec,
    WordEncoderSpec,
)
from foveal.networks import ChainCRF
from foveal.runtime import load
from foveal.tasks import (
    Classification,
    ClassificationSpec,
    PredictionSpec,
    Tagging,
    TaggingSpec,
)
from foveal.tasks._tagging import _settled
from foveal.tasks.base._size_classes import settled
from tests.export.exported import (
    IN_COMPANY,
    TOLERANCE,
    check_answers,
    enlarge,
    exported,
    session_of,
)

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

SENTENCES = [
    Example("the Cat sat on 3 mats", "D N V P C N"),
    Example("dogs", "N"),
    Example("Birds fly in skies", "N V P N"),
]
TEXTS = [Example(each.text, label) for each, label in zip(SENTENCES, "xyz", strict=True)]
RECURRENT = TextEncoderSpec(embedding_size=6, hidden_size=5)
ENCODERS = [
    RECURRENT,
    TextEncoderSpec(
        embedding_size=6,
        hidden_size=5,
        bidirectional=False,
        cell="gru",
        num_layers=2,
        residual=True,
    ),
    TextEncoderSpec(
        embedding_size=6,
        hidden_size=5,
        cell="elman",
        num_layers=2,
        skip=True,
        learned_state=True,
    ),
    WordEncoderSpec(embedding_size=7),
    ConvolutionalEncoderSpec(embedding_size=6, size=5, num_layers=2),
    TransformerEncoderSpec(model_size=8, num_heads=2, num_layers=1),
    TransformerEncoderSpec(model_size=8, num_heads=2, num_layers=1, positions="sinusoidal"),
]
POOLS = [
    "summary",
    "mean",
    "max",
    SoftmaxSpec(),
    SoftmaxSpec(scorer=DotSpec()),
    SoftmaxSpec(scorer=BilinearSpec(scaled=True)),
    SoftmaxSpec(scorer=LinearSpec()),
    SigmoidSpec(),
    HardSpec(),
    SparsemaxSpec(),
    LocalSpec(window=2.0),
    SegmentSpec(),
    SegmentSpec(total=2.0),
]

EMPTY, LONG = Example("", ""), Example("the dog " * 9, "D N " * 9)


def name_of(part: object) -> str:
    return part if isinstance(part, str) else type(part).__name__


def tagging(**settings: object) -> Tagging:
    torch.manual_seed(1)
    task = TaggingSpec(**settings).build_from(SENTENCES)  # pyright: ignore[reportArgumentType]
    enlarge(task)
    return task


def classification(model: ClassifierSpec) -> Classification:
    torch.manual_seed(1)
    task = ClassificationSpec(model=model).build_from(TEXTS)
    enlarge(task)
    return task


def tagger_inputs(task: Tagging, sentences: list[Example]) -> dict[str, np.ndarray]:
    batch = _settled(task.collate([task.encode_source(each) for each in sentences]))
    inputs = {"tokens": batch.tokens.numpy(), "lengths": batch.mask.sum(1).int().numpy()}
    return inputs if batch.spelling is None else inputs | {"spelling": batch.spelling.numpy()}


def classifier_inputs(task: Classification, texts: list[Example]) -> dict[str, np.ndarray]:
    batch = task.collate([task.encode(each) for each in texts])
    tokens, mask = settled(batch.tokens, batch.mask)
    return {"tokens": tokens.numpy(), "lengths": mask.sum(1).int().numpy()}


@pytest.mark.parametrize("crf", [True, False])
@pytest.mark.parametrize("spelling", [None, SpellingSpec(num_buckets=40)])
@pytest.mark.parametrize("encoder", ENCODERS, ids=name_of)
def test_a_tagger_scores_tags_as_the_library_does(
    encoder: TextEncoderSpec, spelling: SpellingSpec | None, crf: bool
) -> None:
    task = tagging(model=TaggerSpec(encoder=encoder, crf=crf, feature_size=3), spelling=spelling)
    session, batch = session_of(task), _settled(task.collate([*map(task.encode_source, SENTENCES)]))
    with torch.no_grad():
        taggings = task.taggings(batch)
    unary = session(**tagger_inputs(task, SENTENCES))["unary"]
    real = batch.mask.numpy()
    np.testing.assert_allclose(unary[real], taggings.unary.numpy()[real], atol=TOLERANCE, rtol=0)
    assert np.ptp(unary[real], axis=0).min() > 100 * TOLERANCE  # the sentences matter
    found = crf_of(task)
    assert (found is None) == (not crf)
    if found is not None:
        np.testing.assert_array_equal(
            np.float32(found["transitions"]), taggings.transitions.detach().numpy()
        )
    for number, sentence in enumerate(SENTENCES):  # of one size class
        alone = session(**tagger_inputs(task, [sentence]))["unary"][0][real[number]]
        together = unary[number][real[number]]
        np.testing.assert_allclose(alone, together, atol=IN_COMPANY, rtol=0)


@pytest.mark.parametrize("crf", [True, False])
@pytest.mark.parametrize("encoder", [RECURRENT, ENCODERS[-1]], ids=name_of)
def test_an_exported_tagger_gives_the_taggings_of_the_library(
    encoder: TextEncoderSpec, crf: bool, tmp_path: Path
) -> None:
    spelling = SpellingSpec(num_buckets=40)
    task = tagging(model=TaggerSpec(encoder=encoder, crf=crf, feature_size=3), spelling=spelling)
    task.calibrate(SENTENCES)
    sentences = [*SENTENCES, EMPTY, LONG]
    model = exported(task, sentences, tmp_path)
    check_answers(task, model, sentences)
    (one,) = model.predict(["dogs"], nbest=1, beam_size=1)
    (right,) = task.predict([Example("dogs")], PredictionSpec(beam_size=1))
    assert (one.output, len(one.nbest)) == (right.output, 1)
    assert one.confidence == pytest.approx(right.confidence, abs=TOLERANCE)


def test_a_tagger_with_scores_of_the_ends_is_exported(tmp_path: Path) -> None:
    """A tagger of your own, whose layer is a `ChainCRF`."""
    task = TaggingSpec(model=EndsSpec()).build_from(SENTENCES)
    enlarge(task)
    save_bundle(task, tmp_path / "run")
    options = ExportOptions(also=(EndsSpec,))
    export_bundle(tmp_path / "run", tmp_path / "export", SENTENCES, options)
    model = load(tmp_path / "export")
    assert all(any(model.settings["crf"][name]) for name in ("start", "end"))
    check_answers(task, model, [*SENTENCES, EMPTY, LONG])


def test_a_small_file_tags_alike_in_every_batch(tmp_path: Path) -> None:
    task = tagging(model=TaggerSpec(encoder=RECURRENT, feature_size=3), spelling=SpellingSpec())
    for storage in ("half", "int8"):
        options = ExportOptions(storage=storage)
        model = exported(task, SENTENCES, tmp_path / storage, options)
        texts = [each.text for each in SENTENCES]
        assert [model.predict(text, nbest=5) for text in texts] == model.predict(texts, nbest=5)


@pytest.mark.parametrize("pooling", POOLS, ids=name_of)
def test_a_classifier_scores_labels_as_the_library_does(pooling: object) -> None:
    task = classification(ClassifierSpec(encoder=RECURRENT, pooling=pooling))  # pyright: ignore[reportArgumentType]
    check_classifier(task)


@pytest.mark.parametrize("encoder", ENCODERS, ids=name_of)
@pytest.mark.parametrize("pooling", ["summary", SoftmaxSpec()], ids=name_of)
def test_every_encoder_classifies(encoder: TextEncoderSpec, pooling: object) -> None:
    check_classifier(classification(ClassifierSpec(encoder=encoder, pooling=pooling)))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("pooling", ["mean", SoftmaxSpec(), SegmentSpec()], ids=name_of)
def test_an_exported_classifier_gives_the_labels_of_the_library(
    pooling: object, tmp_path: Path
) -> None:
    task = classification(ClassifierSpec(encoder=RECURRENT, pooling=pooling))  # pyright: ignore[reportArgumentType]
    task.calibrate(TEXTS)
    texts = [*TEXTS, EMPTY, LONG]
    check_answers(task, exported(task, texts, tmp_path), texts)


def check_classifier(task: Classification) -> None:
    session, inputs = session_of(task), classifier_inputs(task, TEXTS)
    tokens = torch.from_numpy(inputs["tokens"])
    mask = torch.arange(tokens.shape[1]) < torch.from_numpy(inputs["lengths"])[:, None]
    with torch.no_grad():
        classified = task.model(tokens, mask)
    found = session(**inputs)
    np.testing.assert_allclose(
        found["log_probs"], classified.log_probs.numpy(), atol=TOLERANCE, rtol=0
    )
    assert np.ptp(found["log_probs"], axis=0).max() > 100 * TOLERANCE  # the texts matter
    assert ("weights" in found) == (classified.weights is not None)
    if classified.weights is not None:
        np.testing.assert_allclose(
            found["weights"], classified.weights.numpy(), atol=TOLERANCE, rtol=0
        )
    for number, text in enumerate(TEXTS):
        alone = session(**classifier_inputs(task, [text]))
        for name, each in alone.items():
            np.testing.assert_allclose(each[0], found[name][number], atol=IN_COMPANY, rtol=0)


@final
class Ends(nn.Module):
    """Vectors of words and a CRF with scores of the first and the last tag."""

    def __init__(self, vocabulary: int, num_tags: int) -> None:
        super().__init__()
        self.embedding, self.crf = nn.Embedding(vocabulary, 4), ChainCRF(4, num_tags)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor | None = None) -> LinearChain:
        return self.crf(self.embedding(tokens), mask)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class EndsSpec(AbstractTaggerSpec):
    """The spec of `Ends`."""

    kind: Literal["ends"] = "ends"

    @override
    def build(self, *, vocabulary: int, num_tags: int) -> nn.Module:
        return Ends(vocabulary, num_tags)


@emit_tagger.register
def _(spec: EndsSpec, weights: Weights, source: Source) -> Value:
    del spec
    vectors = op("Gather", weights["embedding.weight"], source.tokens)
    return linear(vectors, weights["crf.unary.weight"], weights["crf.unary.bias"])


def test_parts_without_a_graph_are_refused_by_name() -> None:
    attending = TextEncoderSpec(hidden_size=4, self_attention=SoftmaxSpec())
    for encoder, named in ((RecursiveEncoderSpec(), "recursive"), (attending, "self_attention")):
        with pytest.raises(ExportError, match=named):
            session_of(tagging(model=TaggerSpec(encoder=encoder)))
    for model, named in (
        (ClassifierSpec(encoder=RECURRENT, pooling=PathSpec()), "the attention path"),
        (ClassifierSpec(encoder=DocumentEncoderSpec()), "the encoder document"),
        (ClassifierSpec(encoder=BracketedEncoderSpec()), "the encoder bracketed"),
        (
            ClassifierSpec(encoder=TransformerEncoderSpec(attention=SyntacticSpec())),
            "the attention syntactic",
        ),
    ):
        with pytest.raises(ExportError, match=named):
            session_of(classification(model))

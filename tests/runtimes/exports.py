"""Exported models of every kind for the tests of runtimes, with their inputs and the answers of the Python runtime."""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from foveal.bundles import save_bundle
from foveal.data import (
    Example,
    FeaturesSpec,
    ImageSpec,
    SentencePieceSpec,
    SpellingSpec,
    WhitespaceSpec,
)
from foveal.export import ExportOptions, export_bundle
from foveal.models import (
    CaptionerSpec,
    ClassifierSpec,
    DecoderSpec,
    ImageEncoderSpec,
    Seq2SeqSpec,
    SoftmaxSpec,
    TaggerSpec,
    TextEncoderSpec,
)
from foveal.runtime import Answer, Model, Source, load
from foveal.tasks import (
    CaptioningSpec,
    ClassificationSpec,
    PredictionSpec,
    TaggingSpec,
    TransductionSpec,
)
from tests.export.exported import TOLERANCE, enlarge
from tests.export.variants import VARIANTS, WORDS, task_of

_TEXT = TextEncoderSpec(embedding_size=8, hidden_size=8)
_DECODER = DecoderSpec(embedding_size=8, hidden_size=16)
_SENTENCES = (
    Example("the Cat sat on 3 mats", "D N V P C N"),
    Example("dogs", "N"),
    Example("Birds fly in skies", "N V P N"),
    Example("", ""),
    Example("\u00d6l costs \u00b25 in OSLO", "N V C P N"),
)
_FORMS = (
    Example("gehen", "gegangen", features="V;PTCP;PST"),
    Example("\u092a\u095d\u0928\u093e", "\u092a\u095d\u093e", features="V;PST"),
    Example("\u1780\u17d2\u1798 a\u0301b", "\u1780\u17d2\u1798", features=" N ; ;PL"),
    Example("quxz", "quxze", features="V;NEW"),
    Example("", "e", features="V"),
)
_PHRASES = (
    Example("a small  example ", "ein kleines Beispiel"),
    Example("the example of the text", "das Beispiel des Textes"),
    Example(" unseen \u4e16\u754c \U0001f642", "ungesehen \u4e16"),
)


class Exported(NamedTuple):
    """An exported model, and its inputs."""

    folder: Path
    model: Model
    sources: Sequence[Source]

    @property
    def beam_size(self) -> int:
        """The beam size of the model."""
        return self.model.settings["prediction"]["beam_size"]

    def answers(self) -> list[Answer]:
        """Answer the inputs with the Python runtime."""
        return self.model.predict(self.sources, nbest=self.beam_size, attention=True)


def export_task(
    task: Any, examples: Sequence[Example | str], folder: Path, *, plain: bool
) -> Exported:
    """Export a task to a folder."""
    save_bundle(task, folder.with_name(folder.name + ".run"))
    given = [Example(each) if isinstance(each, str) else each for each in examples]
    export_bundle(folder.with_name(folder.name + ".run"), folder, given, ExportOptions(plain=plain))
    return Exported(folder, load(folder), [Source(each.text, each.features) for each in given])


def export_variant(name: str, folder: Path, *, plain: bool = False) -> Exported:
    """Export a small model with random weights."""
    return export_task(task_of(VARIANTS[name]), [*WORDS, "", "ab" * 13], folder, plain=plain)


def export_inflection(folder: Path) -> Exported:
    """Export a model that reads features and graphemes, and copies unseen tokens."""
    model = Seq2SeqSpec(encoder=_TEXT, decoder=replace(_DECODER, copy=True))
    spec = TransductionSpec(
        model=model,
        features=FeaturesSpec(),
        unseen_slots=4,
        prediction=PredictionSpec(beam_size=4, nbest=4),
    )
    return export_task(_random(spec, _FORMS[:2]), _FORMS, folder, plain=True)


def export_subwords(folder: Path) -> Exported:
    """Export a model from subwords to words."""
    texts = [f"{each.text} {n}" for n in range(40) for each in _PHRASES]
    spec = TransductionSpec(
        source=SentencePieceSpec(num_pieces=310).trained_on(texts),
        target=WhitespaceSpec(),
        model=Seq2SeqSpec(encoder=_TEXT, decoder=_DECODER),
        prediction=PredictionSpec(beam_size=3, nbest=3),
    )
    return export_task(_random(spec, _PHRASES), _PHRASES, folder, plain=False)


def export_tagger(folder: Path) -> Exported:
    """Export a tagger with transitions and spelling features."""
    spec = TaggingSpec(
        model=TaggerSpec(encoder=_TEXT, feature_size=3), spelling=SpellingSpec(num_buckets=40)
    )
    return export_task(_random(spec, _SENTENCES), _SENTENCES, folder, plain=False)


def export_classifier(folder: Path) -> Exported:
    """Export a classifier with attention."""
    texts = [replace(each, target=label) for each, label in zip(_SENTENCES, "xyzxy", strict=True)]
    spec = ClassificationSpec(model=ClassifierSpec(encoder=_TEXT, pooling=SoftmaxSpec()))
    return export_task(_random(spec, texts), texts, folder, plain=False)


def export_captioner(folder: Path, image: ImageSpec) -> Exported:
    """Export a model that writes texts for images; the last image is larger than it reads."""
    chance, urls = np.random.default_rng(0), list[str]()
    for height, width in ((20, 30), (9, 25), (60, 100)):
        pixels, written = chance.integers(0, 256, (height, width, 3), dtype=np.uint8), io.BytesIO()
        pixels[:4], pixels[:, :3] = 255, 255  # a margin, to trim
        Image.fromarray(pixels).save(written, "PNG")
        urls.append(f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}")
    examples = [Example(url, "a b c"[: 2 * n + 1]) for n, url in enumerate(urls)]
    spec = CaptioningSpec(
        image=image,
        model=CaptionerSpec(
            encoder=ImageEncoderSpec(sizes=(4, 6), num_channels=image.num_channels),
            decoder=_DECODER,
        ),
        prediction=PredictionSpec(beam_size=3, max_length=6),
    )
    return export_task(_random(spec, examples), examples, folder, plain=False)


OTHERS: Mapping[str, Callable[[Path], Exported]] = {
    "inflection": export_inflection,
    "subwords": export_subwords,
    "tagger": export_tagger,
    "classifier": export_classifier,
}


def check_equal(found: Mapping[str, Any], right: Answer) -> None:
    """Compare an answer of another runtime, in the form of JSON, with that of the Python runtime."""
    assert [each["output"] for each in found["nbest"]] == [each.output for each in right.nbest]
    assert found["output"] == right.output
    for ours, theirs in zip(found["nbest"], right.nbest, strict=True):
        assert abs(ours["score"] - theirs.score) < TOLERANCE
        assert abs(ours["confidence"] - theirs.confidence) < TOLERANCE
    probabilities = found["tokenProbabilities"]
    np.testing.assert_allclose(probabilities, right.token_probabilities, atol=TOLERANCE, rtol=0)
    assert (found["attention"] is None) == (right.attention is None)
    if right.attention is not None:
        assert found["attention"]["sources"] == list(right.attention.sources)
        assert found["attention"]["targets"] == list(right.attention.targets)
        weights = found["attention"]["weights"]
        np.testing.assert_allclose(weights, right.attention.weights, atol=TOLERANCE, rtol=0)


def _random(spec: Any, examples: Sequence[Example]) -> Any:
    """Build a task with random weights that are large enough to decide."""
    torch.manual_seed(2)
    task = spec.build_from(examples)
    enlarge(task)
    return task

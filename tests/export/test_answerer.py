"""ONNX Runtime answers like torch, and what it cannot answer is answered by torch or refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from foveal.attention import Layout
from foveal.bundles import load_bundle
from foveal.data import Document, Example, FeaturesSpec, ImageSpec, WhitespaceSpec
from foveal.errors import ExportError
from foveal.models import CaptionerSpec, DecoderSpec, ImageEncoderSpec
from foveal.runtime import Answer
from foveal.tasks import AbstractTask, CaptioningSpec, Prediction, PredictionSpec
from foveal.tasks.base._prediction import Candidate
from tests.export.exported import enlarge
from tests.export.variants import VARIANTS, WORDS, task_of
from tests.tasks.stored import BUNDLES, INPUTS

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from foveal.export import ExportedAnswerer
from foveal.export._agreement import disagreement

TOLERANCE = 1e-4
STORED = BUNDLES / "0.1.0"
EXAMPLES = [Example(word) for word in (*WORDS, "", "ab" * 14)]


def check_like_torch(task: AbstractTask[Any], examples: Sequence[Example]) -> None:
    """Compare all parts of the answers, and answers alone with answers in a batch, to the bit."""
    answerer = ExportedAnswerer(task)
    nbest = task.prediction.beam_size
    settings = replace(task.prediction, nbest=nbest, trace=True)
    together = answerer.predict(examples, settings)
    for found, right in zip(together, task.predict(examples, settings), strict=True):
        assert found.output == right.output
        assert len(found.nbest) == len(right.nbest)
        for ours, theirs in zip(found.nbest, right.nbest, strict=True):
            assert ours.score == pytest.approx(theirs.score, rel=1e-5, abs=TOLERANCE)
            assert ours.probability == pytest.approx(theirs.probability, abs=TOLERANCE)
        assert found.confidence == pytest.approx(right.confidence, abs=TOLERANCE)
        np.testing.assert_allclose(
            found.token_probabilities, right.token_probabilities, atol=TOLERANCE, rtol=0
        )
        assert (found.trace is None) == (right.trace is None)
        if found.trace is not None and right.trace is not None:
            for name in ("kind", "sources", "targets", "layout", "best", "copied"):
                assert getattr(found.trace, name) == getattr(right.trace, name)
            np.testing.assert_allclose(
                found.trace.weights, right.trace.weights, atol=TOLERANCE, rtol=0
            )
    for example, found in zip(examples, together, strict=True):
        assert answerer.predict([example], settings) == [found]
    assert answerer.predict([*examples, *examples], settings) == [*together, *together]
    answerer.check(examples)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_transduction_is_answered_as_by_torch(name: str) -> None:
    check_like_torch(task_of(VARIANTS[name]), EXAMPLES)


@pytest.mark.parametrize("kind", ["transduction", "classification", "tagging"])
def test_trained_tasks_are_answered_as_by_torch(kind: str) -> None:
    texts = [*INPUTS[kind], "the cat " * 20]
    check_like_torch(load_bundle(STORED / kind), [Example(text) for text in texts])


def test_captions_are_those_of_torch(tmp_path: Path) -> None:
    chance, examples = np.random.default_rng(0), list[Example]()
    for number, (height, width) in enumerate([(20, 30), (9, 25), (24, 40), (24, 11)]):
        path = tmp_path / f"{number}.png"
        Image.fromarray(chance.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)
        examples.append(Example(str(path), "a b c d"[: 2 * number + 1]))
    torch.manual_seed(3)
    spec = CaptioningSpec(
        image=ImageSpec(height=24, width=64, num_channels=3),
        model=CaptionerSpec(
            encoder=ImageEncoderSpec(sizes=(4, 6)),
            decoder=DecoderSpec(embedding_size=8, hidden_size=12),
        ),
        prediction=PredictionSpec(beam_size=3, max_length=6),
    )
    task = spec.build_from(examples)
    enlarge(task)
    check_like_torch(task, examples)
    settings = replace(task.prediction, trace=True)
    (found,) = ExportedAnswerer(task).predict(examples[:1], settings)
    assert found.trace is not None
    assert found.trace.layout == Layout("grid", 5, 8, (4, 4))


@pytest.mark.parametrize(
    "settings",
    [
        PredictionSpec(beam_size=1),
        PredictionSpec(beam_size=4, nbest=2, length_penalty=0.8),
        PredictionSpec(beam_size=3, nbest=3, max_length=4),
        PredictionSpec(beam_size=2, batch_size=2),
    ],
)
def test_settings_of_a_call_replace_those_of_the_task(settings: PredictionSpec) -> None:
    task = task_of(VARIANTS["copy"])
    ours = ExportedAnswerer(task).predict(EXAMPLES, settings)
    for found, right in zip(ours, task.predict(EXAMPLES, settings), strict=True):
        assert [each.output for each in found.nbest] == [each.output for each in right.nbest]
        assert found.score == pytest.approx(right.score, abs=TOLERANCE)


def test_a_document_is_read_as_a_text() -> None:
    task = load_bundle(STORED / "transduction")
    document = Example(Document(("abc", "de")))
    (found,) = ExportedAnswerer(task).predict([document])
    assert found.output == task.predict(document).output


def test_torch_answers_what_a_graph_cannot() -> None:
    """Torch's answers are recognized by their last bits."""
    task = task_of(VARIANTS["softmax"])
    answerer = ExportedAnswerer(task)
    settings = replace(task.prediction, no_repeat_ngram=2)
    assert answerer.predict(WORDS, settings) == task.predict(WORDS, settings)
    assert answerer.predict(WORDS) != task.predict(WORDS)
    short = replace(task.prediction, max_length=3, beam_size=1, nbest=1)
    longer = "abcdefgh" * 64
    longest = longer[1:]
    assert answerer.predict([longer], short) == task.predict([longer], short)
    assert answerer.predict([longest], short) != task.predict([longest], short)


def test_other_weights_are_detected() -> None:
    task = task_of(VARIANTS["softmax"])
    answerer = ExportedAnswerer(task)
    answerer.check(EXAMPLES)
    with torch.no_grad():
        task.model.decoder.output.bias.add_(torch.linspace(0, 0.5, 20 + task.spec.num_slots)[:20])
    with pytest.raises(ExportError, match=r"answer an example differently. For 'a', the output is"):
        answerer.check(EXAMPLES)


class _Hesitant:
    """A runtime that rounds differently for one input than for several."""

    def __init__(self, exported: Any) -> None:
        self.prepared, self.shape, self._exported = exported.prepared, exported.shape, exported

    def answer(self, prepared: Sequence[Any], search: Any, *, attention: bool) -> list[Answer]:
        found = self._exported.answer(prepared, search, attention=attention)
        if len(found) > 1:
            return found
        return [replace(found[0], score=found[0].score * (1 + 1e-7))]


def test_answers_that_depend_on_their_batch_are_detected() -> None:
    answerer = ExportedAnswerer(task_of(VARIANTS["softmax"]))
    answerer._exported = _Hesitant(answerer._exported)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ExportError, match="depends on the rest of the batch"):
        answerer.check(EXAMPLES)


def one_prediction() -> Prediction:
    """Return a prediction with all parts."""
    task = task_of(VARIANTS["softmax"])
    return task.predict(["bad"], replace(task.prediction, trace=True))[0]


def test_every_difference_is_named() -> None:
    one = one_prediction()
    assert one.trace is not None
    assert disagreement(one, one) is None
    best, second, *rest = one.nbest
    weights = ((1.0, 0.0, 0.0), *one.trace.weights[1:])
    for other, name in (
        (one._replace(output="x"), "the output is 'x'"),
        (one._replace(score=one.score + 1), "the output is"),
        (one._replace(confidence=float("nan")), "confidence"),
        (one._replace(nbest=(best, *rest)), "scores: got 2 numbers, expected 3"),
        (one._replace(nbest=(best, second._replace(output="x"), *rest)), "contains 'x'"),
        (one._replace(nbest=(best._replace(probability=0.5), second, *rest)), "probabilities"),
        (one._replace(token_probabilities=one.token_probabilities[1:]), "token probabilities"),
        (one._replace(trace=None), "attention, the other has none"),
        (one._replace(trace=replace(one.trace, kind="hard")), "attention.kind is 'hard'"),
        (one._replace(trace=replace(one.trace, layout=Layout("grid", 1, 3))), "attention.layout"),
        (one._replace(trace=replace(one.trace, weights=weights)), "attention: got"),
    ):
        assert name in (disagreement(other, one) or "equal")


def test_rounding_is_no_difference() -> None:
    one = one_prediction()
    near = one._replace(score=one.score + 5e-5, confidence=one.confidence - 5e-5)
    assert disagreement(near, one) is None
    first, second = Candidate("a", -1.0, 0.3), Candidate("b", -1.00001, 0.29999)
    ours, theirs = Prediction(*second, (second, first)), Prediction(*first, (first, second))
    assert disagreement(ours, theirs) is None
    far = Candidate("b", -1.2, 0.2)
    ours, theirs = Prediction(*far, (far, first)), Prediction(*first, (first, far))
    assert disagreement(ours, theirs) is not None


def test_a_task_without_an_export_is_refused() -> None:
    with pytest.raises(ExportError, match="the task language_modeling has no export yet"):
        ExportedAnswerer(load_bundle(STORED / "language_modeling"))


def test_features_are_read_before_the_source() -> None:
    examples = [
        Example("bad", "c a b", features="V;PST"),
        Example("cafe", "f", features="N"),
        Example("xy", "a", features=""),
    ]
    torch.manual_seed(2)
    spec = replace(task_of(VARIANTS["copy"]).spec, features=FeaturesSpec(), target=WhitespaceSpec())
    task = spec.build_from(examples)
    enlarge(task)
    check_like_torch(task, examples)
    plain = ExportedAnswerer(task).predict([replace(examples[0], features="")])
    assert plain != ExportedAnswerer(task).predict(examples[:1])

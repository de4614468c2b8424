"""Questions about images, and labels and captions for clips."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example, ImageSpec
from foveal.errors import ValueRangeError
from foveal.inspection import explain
from foveal.inspection.explaining._explanation_page import explanation_page
from foveal.models import (
    CaptionerSpec,
    DecoderSpec,
    FramesEncoderSpec,
    ImageClassifierSpec,
    ImageEncoderSpec,
    LocalSpec,
    SoftmaxSpec,
    TextEncoderSpec,
    VideoClassifierSpec,
    VQAModelSpec,
)
from foveal.models.parts._vision_specs import VectorFrameSpec
from foveal.tasks import (
    CaptioningSpec,
    ImageClassificationSpec,
    PredictionSpec,
    VideoClassificationSpec,
    VisualQuestionAnsweringSpec,
)
from tests.tasks.pictures import bars
from tests.tasks.tiny import train

pytestmark = pytest.mark.slow

IMAGE = ImageSpec(height=32, width=64)
FRAMES = FramesEncoderSpec(
    frame=ImageEncoderSpec(sizes=(8, 8), positions=True), hidden_size=12, dropout=0.0
)
TRACED = PredictionSpec(nbest=1, trace=True)


def questions(folder: Path) -> list[Example]:
    """Return questions about bars: the color, and whether the bar is high."""
    found = list[Example]()
    for example in bars(folder, 40, most=1):
        color, height = (example.target or "").split()
        found.append(Example(f"{example.source}\tWhat color is the bar?", color))
        is_high = "yes" if height == "high" else "no"
        found.append(Example(f"{example.source}\tIs it high?", is_high))
    return found


def clips(folder: Path, size: int = 40) -> list[Example]:
    """Draw a square that moves left or right, as folders of frames of several lengths."""
    generator, found = np.random.default_rng(0), list[Example]()
    for number in range(size):
        side, frames = int(generator.integers(2)), int(generator.integers(4, 7))
        start, place = int(generator.integers(6, 10)), folder / f"clip{number}"
        place.mkdir(parents=True)
        for step in range(frames):
            image = np.full((12, 24, 3), 255, np.uint8)
            left = start + (2 * side - 1) * step
            image[4:8, left : left + 4] = (30, 60, 200)
            Image.fromarray(image).save(place / f"{step}.png")
        found.append(Example(str(place), ("left", "right")[side]))
    return found


def check(task: Any, examples: list[Example], folder: Path) -> None:
    """Check single and batched predictions, the bundle, and the page."""
    alone = [task.predict([example], TRACED)[0] for example in examples[:5]]
    assert task.predict(examples[:12], TRACED)[:5] == alone
    save_bundle(task, folder / "bundle")
    assert load_bundle(folder / "bundle").predict(examples[:5], TRACED) == alone
    trace = alone[0].trace
    assert trace is not None
    assert trace.layout.kind == "grid"
    explanation = explain(task, examples[0])
    page = explanation_page(explanation)
    assert "Attention" in page
    assert "data:image/png;base64," in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert explanation.to_data()["picture"].startswith("data:image/png;base64,")


def test_questions_about_bars_are_answered(tmp_path: Path) -> None:
    examples = questions(tmp_path / "bars")
    torch.manual_seed(0)
    spec = VisualQuestionAnsweringSpec(
        image=IMAGE,
        model=VQAModelSpec(
            encoder=ImageEncoderSpec(sizes=(8, 16)),
            question=TextEncoderSpec(embedding_size=8, hidden_size=8, dropout=0.0),
            hidden_size=16,
        ),
    )
    task = spec.build_from(examples)
    train(task, examples, epochs=25, rate=1e-2)
    found = task.evaluate(examples)
    assert found.value > 90
    assert [part.name for part in found.slices[:2]] == ["what color", "is it"]
    check(task, examples, tmp_path)
    without = replace(spec, model=replace(spec.model, attention=None)).build_from(examples)
    assert without.predict(examples[:2], TRACED)[0].trace is None


def test_concatenation_reads_image_and_question(tmp_path: Path) -> None:
    examples = questions(tmp_path / "bars")
    torch.manual_seed(0)
    model = VQAModelSpec(
        encoder=ImageEncoderSpec(sizes=(8, 16)),
        question=TextEncoderSpec(embedding_size=8, hidden_size=8, dropout=0.0),
        attention=None,
        hidden_size=16,
        fusion="concatenation",
    )
    task = VisualQuestionAnsweringSpec(image=IMAGE, model=model).build_from(examples)
    names = {name.split(".")[0] for name, _ in task.model.named_parameters()}
    assert "of_both" in names
    assert not names & {"of_image", "scale", "shift"}
    train(task, examples, epochs=25, rate=1e-2)
    assert task.evaluate(examples).value > 90


def test_an_image_counts_for_each_of_its_questions(tmp_path: Path) -> None:
    examples = questions(tmp_path)[:6]
    torch.manual_seed(0)
    spec = VisualQuestionAnsweringSpec(
        image=IMAGE, model=VQAModelSpec(encoder=ImageEncoderSpec(sizes=(8, 8)))
    )
    for built in (spec, replace(spec, model=replace(spec.model, attention=None))):
        task = built.build_from(examples)
        task.model.eval()
        batch = task.collate([task.encode(example) for example in examples])
        assert len(batch.pictures) == 3
        alone = [task.loss(task.collate([task.encode(example)])).total for example in examples]
        torch.testing.assert_close(task.loss(batch).total, torch.stack(alone).sum())


@pytest.mark.parametrize("pooling", [SoftmaxSpec(), "mean"])
def test_images_are_labelled(pooling: Any, tmp_path: Path) -> None:
    examples = bars(tmp_path / "bars", 40, most=1)
    torch.manual_seed(0)
    encoder = ImageEncoderSpec(sizes=(8, 16), blocks=1)
    spec = ImageClassificationSpec(
        image=IMAGE, model=ImageClassifierSpec(encoder=encoder, pooling=pooling)
    )
    task = spec.build_from(examples)
    if pooling == "mean":
        assert task.predict(examples[:1], TRACED)[0].trace is None
        return
    train(task, examples, epochs=12, rate=1e-2)
    assert task.evaluate(examples).value > 90
    check(task, examples, tmp_path)


@pytest.mark.parametrize("pooling", [SoftmaxSpec(), LocalSpec(window=2.0), "summary"])
def test_clips_are_labelled(pooling: Any, tmp_path: Path) -> None:
    examples = clips(tmp_path)
    torch.manual_seed(1)
    spec = VideoClassificationSpec(
        image=IMAGE, model=VideoClassifierSpec(encoder=FRAMES, pooling=pooling)
    )
    task = spec.build_from(examples)
    if pooling == "summary":
        assert task.predict(examples[:1], TRACED)[0].trace is None
        return
    if isinstance(pooling, SoftmaxSpec):
        train(task, examples, epochs=15, rate=1e-2)
        assert task.evaluate(examples).value > 90
    check(task, examples, tmp_path)


def test_clips_are_told(tmp_path: Path) -> None:
    examples = clips(tmp_path, 12)
    torch.manual_seed(2)
    decoder = DecoderSpec(embedding_size=8, hidden_size=12, dropout=0.0)
    spec = CaptioningSpec(
        image=IMAGE, model=CaptionerSpec(encoder=FRAMES, decoder=decoder), max_frames=5
    )
    task = spec.build_from(examples)
    check(task, examples, tmp_path)
    (shown,) = task.predict(examples[:1], TRACED)
    assert shown.trace is not None
    assert len(shown.trace.sources) <= 5  # five of the six frames were read
    frames = replace(FRAMES, frame=VectorFrameSpec(input_size=3))
    vectors = replace(spec, model=replace(spec.model, encoder=frames))
    with pytest.raises(ValueRangeError, match="frames are images"):
        vectors.build_from(examples)

"""Transcription: recordings of tones in, their names out, with attention and CTC."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example
from foveal.errors import AudioError, ValueRangeError
from foveal.inspection import explain
from foveal.specs import from_json, to_json
from foveal.tasks import (
    PredictionSpec,
    SpecAugmentSpec,
    TaskSpec,
    Transcription,
)
from foveal.tasks.speech._masking import masked
from foveal.tasks.speech._spectrograms import Heard
from foveal.web._runs import load_runs
from tests.tasks.tiny import train
from tests.tasks.tones import TONES, tones

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Example, list[float]]]:
    return tones(tmp_path_factory.mktemp("tones"), 60)


@pytest.fixture(scope="module")
def examples(written: list[tuple[Example, list[float]]]) -> list[Example]:
    return [example for example, _ in written]


@pytest.fixture(scope="module")
def task(examples: list[Example]) -> Transcription:
    torch.manual_seed(0)
    task = TONES.build_from(examples)
    train(task, examples, epochs=40, rate=1e-2, batch_size=10)
    return task


def test_tones_are_named_and_listened_to(task: Transcription, examples: list[Example]) -> None:
    found = task.evaluate(examples)
    assert found.main.name == "wer"
    assert found.value < 12
    (shown,) = task.predict(examples[:1], PredictionSpec(trace=True, beam_size=2))
    assert shown.trace is not None
    assert shown.trace.layout.columns == len(shown.trace.sources)
    assert shown.trace.sources[1] == "0.08 s"
    assert all(sum(row) == pytest.approx(1.0, abs=1e-5) for row in shown.trace.weights)


def test_an_answer_does_not_depend_on_the_rest_of_the_batch(
    task: Transcription, examples: list[Example]
) -> None:
    together = task.predict(examples[:9])
    assert [task.predict([example])[0] for example in examples[:9]] == together


def test_a_bundle_answers_as_the_task_did(
    task: Transcription, examples: list[Example], tmp_path: Path
) -> None:
    save_bundle(task, tmp_path)
    again = load_bundle(tmp_path)
    assert again.spec == task.spec == from_json(TaskSpec, to_json(task.spec))
    assert again.predict(examples[:4]) == task.predict(examples[:4])
    (run,) = load_runs([tmp_path])  # the explorer answers a recording of silence
    assert run.sees


def test_forced_alignment_finds_the_tones(
    task: Transcription, written: list[tuple[Example, list[float]]]
) -> None:
    for example, middles in written[:10]:
        spans = task.spans(example)
        assert [span.token for span in spans] == (example.target or "").split()
        for span, middle in zip(spans, middles, strict=True):
            assert span.start < span.end
            assert abs((span.start + span.end) / 2 - middle) < 0.3
            assert 0 < span.confidence <= 1
        assert all(first.end <= second.start for first, second in pairwise(spans))
    assert task.spans(replace(written[0][0], target="")) == []
    said, _ = written[0]
    other = " ".join("low" if name == "high" else "high" for name in (said.target or "").split())
    means = [
        mean(span.confidence for span in task.spans(replace(said, target=text)))
        for text in (said.target, other)
    ]
    assert means[0] > 0.5 > means[1]  # a wrong text has a low confidence
    with pytest.raises(ValueRangeError, match="positions, got"):
        task.spans(replace(written[0][0], target="low " * 100))


def test_an_explanation_has_the_spectrogram_and_its_attention(
    task: Transcription, examples: list[Example]
) -> None:
    explanation = explain(task, examples[0])
    assert explanation.output == task.predict(examples[:1])[0].output
    assert explanation.picture is not None
    assert explanation.picture.shape[0] == 10
    assert explanation.picture.shape[1] == 4 * len(explanation.sources)
    assert explanation.steps[0].weights is not None


def test_ctc_alone_learns_and_explains_itself(examples: list[Example]) -> None:
    torch.manual_seed(0)
    task = replace(TONES, ctc=1.0).build_from(examples)
    train(task, examples, epochs=24, rate=1e-2, batch_size=10)
    assert task.evaluate(examples).value < 12
    assert not task.attends
    explanation = explain(task, examples[0])
    (trace,) = explanation.others
    assert trace.kind == "ctc"
    assert trace.targets == tuple(explanation.output.split())
    assert all(sum(row) == pytest.approx(1.0, abs=1e-4) for row in trace.weights)


def test_a_text_that_is_too_long_for_ctc_leaves_the_loss_finite(
    task: Transcription, examples: list[Example]
) -> None:
    long = replace(examples[0], target="low " * 60)
    batch = task.collate([task.encode(long), task.encode(examples[1])])
    loss = task.loss(batch)
    loss.total.backward()
    assert loss.total.isfinite()
    weights = [weight.grad for weight in task.model.parameters() if weight.grad is not None]
    assert all(weight.isfinite().all() for weight in weights)
    task.model.zero_grad()


def test_attention_alone_has_no_alignment_by_ctc(examples: list[Example]) -> None:
    task = replace(TONES, ctc=0.0).build_from(examples)
    with pytest.raises(ValueRangeError, match="expected a model with CTC"):
        task.spans(examples[0])


def test_an_unreadable_recording_is_an_error_with_its_name(
    task: Transcription, tmp_path: Path
) -> None:
    (tmp_path / "no.wav").write_bytes(b"RIFF")
    with pytest.raises(AudioError, match=r"no\.wav"):
        task.predict([Example(str(tmp_path / "no.wav"))])


def test_masks_silence_bands_and_moments_of_training_only(
    task: Transcription, examples: list[Example]
) -> None:
    torch.manual_seed(0)
    source = Heard(torch.ones(50, 30, 10), torch.ones(50, 30, dtype=torch.bool))
    found = masked(source, SpecAugmentSpec(bands=1, max_band=3, times=1, max_time=5)).frames
    silent_times, silent_bands = (found == 0).all(2).sum(1), (found == 0).all(1).sum(1)
    assert silent_times.max() == 5
    assert silent_bands.max() == 3
    assert silent_times.min() == silent_bands.min() == 0
    augmented = replace(TONES, augment=SpecAugmentSpec()).build_from(examples)
    batch = augmented.collate([augmented.encode(example) for example in examples[:2]])
    plain = task.source_of(batch).frames
    assert torch.equal(augmented.source_of(batch).frames, plain) is not augmented.model.training
    augmented.model.eval()
    assert torch.equal(augmented.source_of(batch).frames, plain)

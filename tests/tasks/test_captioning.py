"""Captioning: images in, texts out."""

import base64
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sacrebleu
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.data import END, Example, ImageSpec, InMemory
from foveal.errors import DataError, ImageError, ValueRangeError
from foveal.metrics import bleu, cider
from foveal.models import FramesEncoderSpec, PathSpec, SegmentSpec, SoftmaxSpec
from foveal.specs import from_json, to_json
from foveal.tasks import Captioning, PredictionSpec, TaskSpec
from foveal.tasks.base._losses import doubly_stochastic_loss
from tests.tasks.pictures import BARS, DECODER, bars
from tests.tasks.tiny import train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    return bars(tmp_path_factory.mktemp("bars"), 120, most=2)


@pytest.fixture(scope="module")
def task(examples: list[Example]) -> Captioning:
    torch.manual_seed(0)
    task = BARS.build_from(examples)
    train(task, examples, epochs=35, rate=1e-2)
    return task


def test_bars_are_named_and_looked_at(task: Captioning, examples: list[Example]) -> None:
    found = task.evaluate(examples)
    assert found.value > 90
    assert [*found.statistics] == ["exact_match", "bleu", "token_error_rate", "cider"]
    names = [part.name for part in found.slices]
    assert names[:2] == ["2 symbols", "4 symbols"]  # slices by output length
    (shown,) = task.predict(examples[:1], PredictionSpec(trace=True))
    trace = shown.trace
    assert trace is not None
    assert trace.layout.kind == "grid"
    assert (trace.layout.rows or 0) * (trace.layout.columns or 0) == len(trace.sources)
    assert trace.targets == tuple(shown.output.split())
    assert all(sum(row) == pytest.approx(1.0, abs=1e-5) for row in trace.weights)


def test_a_bundle_answers_as_the_task_did(
    task: Captioning, examples: list[Example], tmp_path: Path
) -> None:
    save_bundle(task, tmp_path)
    again = load_bundle(tmp_path)
    assert isinstance(again, Captioning)
    assert again.spec == task.spec == from_json(TaskSpec, to_json(task.spec))
    assert again.predict(examples[:8]) == task.predict(examples[:8])


def test_an_image_given_as_data_is_the_file(task: Captioning, examples: list[Example]) -> None:
    data = base64.b64encode(Path(examples[0].text).read_bytes()).decode()
    inline = Example(f"data:image/png;base64,{data}")
    assert task.predict([inline]) == task.predict([examples[0]])
    for broken in ("data:image/png;base64,???", "data:image/png,abc"):
        with pytest.raises(DataError, match="bytes in base64"):
            task.predict([Example(broken)])
    with pytest.raises(ImageError, match="expected PNG"):
        task.predict([Example("data:image/png;base64,aGVsbG8=")])


def test_what_is_no_image_is_named(task: Captioning, tmp_path: Path) -> None:
    path = tmp_path / "notes.png"
    path.write_text("no image")
    with pytest.raises(ImageError, match=r"notes\.png"):
        task.predict([Example(str(path))])


@pytest.mark.parametrize("attention", [SoftmaxSpec(), SegmentSpec(total=1.0), PathSpec()])
def test_what_else_is_to_be_learnt_is_a_part_of_the_loss(
    attention: SoftmaxSpec | SegmentSpec | PathSpec, examples: list[Example]
) -> None:
    torch.manual_seed(1)
    model = replace(BARS.model, decoder=replace(DECODER, attention=attention))
    spec = replace(BARS, model=model, doubly_stochastic=0.5, coverage=0.25)
    task = spec.build_from(examples)
    batch = task.collate([task.encode(example) for example in examples[:6]])
    loss = task.loss(batch)
    parts = {name: part.item() for name, part in loss.parts.items()}
    expected = parts["likelihood"] + 0.5 * parts["doubly_stochastic"] + 0.25 * parts["coverage"]
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    assert min(parts.values()) > 0
    without = replace(
        spec, model=replace(spec.model, decoder=replace(DECODER, attention=None))
    ).build_from(examples)
    with pytest.raises(ValueRangeError, match="with attention, got one without"):
        without.loss(batch)


def test_the_doubly_stochastic_loss_is_0_where_each_place_is_read_once() -> None:
    weights = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]])
    mask, places = torch.tensor([[True, True, False]]), torch.tensor([[True, True, False]])
    assert doubly_stochastic_loss(weights, mask, places).item() == 0
    assert doubly_stochastic_loss(weights, mask, ~places).item() == 1  # never read


def test_braces_of_an_output_are_balanced(examples: list[Example]) -> None:
    """Without the constraint, an untrained model would open braces and never close them."""
    braced = [replace(example, target=f"{{ {example.target} }}") for example in examples]
    torch.manual_seed(3)
    task = replace(BARS, balanced=("{", "}")).build_from(braced)
    with torch.no_grad():
        task.model.decoder.output.bias[task._target.encode(["{"])] += 4.0
        task.model.decoder.output.bias[END] -= 4.0
    outputs = [answer.output.split() for answer in task.predict(braced[:10])]
    assert any("{" in output for output in outputs)
    for output in outputs:
        depth = 0
        for symbol in output:
            depth += {"{": 1, "}": -1}.get(symbol, 0)
            assert depth >= 0
        assert depth == 0
    with pytest.raises(DataError, match="no target of the training data"):
        replace(BARS, balanced=("(", ")")).build_from(braced)


def test_channels_of_image_and_encoder_must_agree(examples: list[Example]) -> None:
    gray = replace(BARS, image=replace(BARS.image, num_channels=1))
    with pytest.raises(ValueRangeError, match="Set both to 1 or to 3"):
        gray.build_from(InMemory(tuple(examples)))


# Computed by pycocoevalcap 1.2, the metric's reference implementation, for the output of
# `captions`.
REFERENCE_CIDER = [
    3.29512734527,
    3.4489860621,
    2.09863484377,
    2.32834551596,
    0.795304092741,
    2.91966960618,
    1.22580687834,
    4.48578146031,
    1.08080237619,
    3.3710714035,
    2.77301242918,
    5.39490294556,
]


def captions() -> tuple[list[list[str]], list[str]]:
    """Draw one to five references for each of twelve pictures, and an output similar to one of
    them.
    """
    random = Random(7)
    words = ("a", "the", "red", "blue", "cat", "dog", "sits", "runs", "on", "under", "table", "box")
    references = [
        [
            " ".join(random.choices(words, k=random.randint(3, 9)))
            for _ in range(random.randint(1, 5))
        ]
        for _ in range(12)
    ]
    outputs = [
        " ".join(
            [*random.choice(texts).split()[: random.randint(2, 9)], *random.choices(words, k=2)]
        )
        for texts in references
    ]
    return references, outputs


def test_cider_is_that_of_its_authors() -> None:
    references, outputs = captions()
    found = cider(references, outputs)
    assert found.rows[:, 0] == pytest.approx(REFERENCE_CIDER, abs=1e-9)
    assert found.value == pytest.approx(100 * sum(REFERENCE_CIDER) / 12)


def test_bleu_with_several_references_is_that_of_sacrebleu() -> None:
    references, outputs = captions()
    most = max(map(len, references))
    streams: list[Any] = [
        [texts[n] if n < len(texts) else None for texts in references] for n in range(most)
    ]
    expected = sacrebleu.corpus_bleu(outputs, streams, tokenize="none", force=True).score
    assert bleu(references, outputs, tokenize="none").value == pytest.approx(expected)
    assert expected > bleu([texts[0] for texts in references], outputs, tokenize="none").value > 0


def test_all_captions_of_a_picture_are_its_references(examples: list[Example]) -> None:
    free = replace(BARS, outputs="free")
    task = free.build_from(examples)
    train(task, examples, epochs=1, rate=1e-2)
    (first, second), told = task.predict(examples[:2]), list[int]()
    said = [replace(examples[0], target=text) for text in ("nothing of this", first.output)]
    found = task.evaluate([said[0], examples[1], said[1]], answered=told.append)
    assert found.examples == [said[0], examples[1]]
    assert [answer.output for answer in found.predictions] == [first.output, second.output]
    assert [*found.statistics] == ["cider", "bleu", "exact_match"]
    assert found.main.name == "cider"
    assert found.statistics["exact_match"].rows[0, 0] == 1  # matches its second reference
    assert sum(told) == 3


def test_cider_rewards_what_is_particular() -> None:
    references = ["a red cat sits here", "a blue dog sits here", "a green bird sits here"]
    particular = cider(references, ["a red cat is there", *references[1:]]).rows[0, 0]
    common = cider(references, ["a green dog sits here", *references[1:]]).rows[0, 0]
    assert particular > common == 0  # n-grams of all references have weight 0
    assert cider(references, references).value == pytest.approx(1000.0)
    assert cider(references, [""] * 3).value == 0


@pytest.mark.parametrize("image", [ImageSpec(trim=True), ImageSpec(ink=0.1)])
def test_the_frames_of_a_clip_are_not_shrunk_one_by_one(image: ImageSpec) -> None:
    spec = replace(BARS, image=image, model=replace(BARS.model, encoder=FramesEncoderSpec()))
    with pytest.raises(ValueRangeError, match=r"must have one size.*Set image.trim to false and"):
        spec.build_from([Example("a.gif", "red")])

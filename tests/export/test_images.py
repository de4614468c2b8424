"""Exported captioning models write what the library writes, for images of several sizes."""

import base64
import dataclasses
import io
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from foveal.data import Example, ImageSpec
from foveal.errors import ExportError
from foveal.export import ExportOptions
from foveal.models import (
    CaptionerSpec,
    DecoderSpec,
    FramesEncoderSpec,
    HardSpec,
    ImageEncoderSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    LocalSpec,
    MultiHeadSpec,
    PathSpec,
    RecurrentSpec,
    SegmentSpec,
    SigmoidSpec,
    SparsemaxSpec,
    TransformerDecoderSpec,
)
from foveal.runtime import ExportedModelError, Model, Source
from foveal.tasks import Captioning, CaptioningSpec, PredictionSpec
from tests.export.exported import check_answers, enlarge, exported, session_of

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

SIZES = [(20, 30), (9, 25), (24, 11), (60, 100)]  # the last one is larger than the model reads
decoder_of = partial(DecoderSpec, embedding_size=8, hidden_size=12)
ENCODERS = {
    "strides": ImageEncoderSpec(sizes=(4, 6)),
    "batch norm": ImageEncoderSpec(sizes=(4, 6), norm="batch"),
    "max pool": ImageEncoderSpec(sizes=(4, 6), downsampling="max_pool"),
    "mean pool": ImageEncoderSpec(sizes=(4, 6), downsampling="mean_pool", norm="batch"),
    "residual blocks": ImageEncoderSpec(sizes=(4, 6), blocks=2),
    "plain blocks": ImageEncoderSpec(
        sizes=(4, 6),
        strides=((2, 1), (3, 2)),
        blocks=1,
        residual=False,
        norm="batch",
        downsampling="mean_pool",
    ),
    "positions": ImageEncoderSpec(sizes=(4, 6), strides=((2, 2), (4, 2)), positions=True),
    "large kernel": ImageEncoderSpec(sizes=(4, 6), kernel_size=5, downsampling="max_pool"),
    "gray": ImageEncoderSpec(num_channels=1, sizes=(4, 6, 5), strides=((2, 2), (1, 1), (2, 2))),
    "rows": ImageEncoderSpec(sizes=(4, 6), rows=RecurrentSpec(hidden_size=4)),
    "rows of gru": ImageEncoderSpec(
        sizes=(4, 6), rows=RecurrentSpec(cell="gru", hidden_size=4, bidirectional=False)
    ),
    "rows of two layers": ImageEncoderSpec(
        sizes=(4, 6), rows=RecurrentSpec(cell="elman", hidden_size=4, num_layers=2, skip=True)
    ),
}
DECODERS = {
    "none": decoder_of(attention=None),
    "sigmoid": decoder_of(attention=SigmoidSpec()),
    "sparsemax": decoder_of(attention=SparsemaxSpec()),
    "hard": decoder_of(attention=HardSpec()),
    "local": decoder_of(attention=LocalSpec(window=3.0)),
    "latent hard": decoder_of(attention=LatentHardSpec()),
    "latent monotone": decoder_of(attention=LatentMonotoneSpec()),
    "coverage": decoder_of(coverage=True),
    "shift": decoder_of(shift=1),
    "before": decoder_of(attend="before", deep_output=True),
    "input feeding": decoder_of(input_feeding=True, bridge="both"),
    "transformer": TransformerDecoderSpec(model_size=8, num_heads=2, num_layers=1),
}


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    """Images of random pixels in files of several formats."""
    folder, chance = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    found = list[Example]()
    for number, (height, width) in enumerate(SIZES):
        pixels = chance.integers(0, 256, (height, width, 3), dtype=np.uint8)
        path = folder / f"{number}.{'jpg' if number == 3 else 'png'}"
        Image.fromarray(pixels).save(path)
        found.append(Example(str(path), "a b c d e f"[: 2 * number + 3]))
    return found


def captioning(
    examples: list[Example],
    encoder: ImageEncoderSpec = ENCODERS["strides"],
    decoder: DecoderSpec | TransformerDecoderSpec = decoder_of(),  # noqa: B008
    image: ImageSpec = ImageSpec(height=24, width=32),  # noqa: B008
    **settings: object,
) -> Captioning:
    torch.manual_seed(3)
    image = dataclasses.replace(image, num_channels=encoder.num_channels)
    task = CaptioningSpec(
        image=image,
        model=CaptionerSpec(encoder=encoder, decoder=decoder),
        prediction=PredictionSpec(beam_size=3, max_length=6),
        **settings,  # pyright: ignore[reportArgumentType]
    ).build_from(examples)
    enlarge(task)
    return task


@pytest.mark.parametrize("name", ENCODERS)
def test_every_image_encoder_is_exported(
    name: str, examples: list[Example], tmp_path: Path
) -> None:
    task = captioning(examples, ENCODERS[name])
    check_answers(task, exported(task, examples, tmp_path), examples)


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_reads_the_grid_of_an_image(
    name: str, examples: list[Example], tmp_path: Path
) -> None:
    task = captioning(examples, decoder=DECODERS[name])
    check_answers(task, exported(task, examples, tmp_path), examples)


@pytest.mark.parametrize(
    "image", [ImageSpec(height=24, width=32, trim=True), ImageSpec(height=24, width=32, ink=0.9)]
)
def test_images_are_prepared_as_in_the_library(
    image: ImageSpec, examples: list[Example], tmp_path: Path
) -> None:
    task = captioning(examples, image=image)
    check_answers(task, exported(task, examples, tmp_path), examples)


@pytest.fixture(scope="module")
def model(examples: list[Example], tmp_path_factory: pytest.TempPathFactory) -> Model:
    """An exported model."""
    task = captioning(examples, ENCODERS["batch norm"])
    return exported(task, examples, tmp_path_factory.mktemp("model"))


def test_an_image_is_a_path_the_content_of_a_file_or_a_url(
    model: Model, examples: list[Example]
) -> None:
    path = Path(examples[0].text)
    content = path.read_bytes()
    url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    forms = [str(path), path, content, url, Source(image=content)]
    answers = model.predict(forms, nbest=3)
    assert all(answer == answers[0] for answer in answers)
    assert model.predict(content, nbest=3) == answers[0]


def test_settings_tell_how_an_image_is_read(model: Model) -> None:
    image = model.settings["image"]
    assert (image["num_channels"], image["height"], image["width"]) == (3, 24, 32)
    assert (image["mean"], image["std"], image["cell"]) == (1.0, -1.0, [4, 4])


def test_files_that_are_no_images_are_refused(model: Model, tmp_path: Path) -> None:
    notes = tmp_path / "notes.png"
    notes.write_text("no image")
    for source, message in (
        (str(notes), "notes.png: the file is in an unknown format"),
        (str(tmp_path / "none.png"), "cannot be read"),
        (b"\x89PNG\r\n\x1a\nbroken", "the image: the image is damaged"),
        ("data:image/png,abc", "bytes in base64"),
        (b"", "the file is empty, expected PNG, JPEG"),
    ):
        with pytest.raises(ExportedModelError, match=message):
            model.predict(source)


def test_an_image_with_too_many_pixels_is_refused(model: Model) -> None:
    written = io.BytesIO()
    Image.new("1", (1 << 13, 1 << 13)).save(written, "PNG")  # a file of a few kilobytes
    with pytest.raises(ExportedModelError, match="expected from 1 to 33,554,432 pixels"):
        model.predict(written.getvalue())


def test_small_files_answer_alike_in_every_batch(examples: list[Example], tmp_path: Path) -> None:
    task = captioning(examples, ImageEncoderSpec(sizes=(8, 16), norm="batch"))
    for storage in ("half", "int8"):
        options = ExportOptions(storage=storage)
        small = exported(task, examples, tmp_path / storage, options)
        together = small.predict([example.text for example in examples], nbest=3)
        assert [small.predict(example.text, nbest=3) for example in examples] == together


def test_parts_without_a_graph_are_refused_by_name(examples: list[Example]) -> None:
    for decoder, message in (
        (decoder_of(attention=PathSpec()), "the attention path"),
        (decoder_of(attention=MultiHeadSpec(num_heads=2)), "the attention multi_head"),
        (decoder_of(attention=SegmentSpec()), "decoder.attention segment"),
        (
            TransformerDecoderSpec(model_size=8, num_heads=2, attention=SegmentSpec()),
            "decoder.attention segment",
        ),
    ):
        with pytest.raises(ExportError, match=message):
            session_of(captioning(examples, decoder=decoder))
    with pytest.raises(ExportError, match="balanced has no export"):
        session_of(captioning(examples, balanced=("a", "b")))
    repeating = captioning(examples)
    spec = dataclasses.replace(repeating.spec, prediction=PredictionSpec(no_repeat_ngram=2))
    with pytest.raises(ExportError, match=r"prediction\.no_repeat_ngram"):
        session_of(Captioning(spec, repeating.vocabularies, repeating.model))
    clips = CaptioningSpec(
        image=ImageSpec(height=24, width=32),
        model=CaptionerSpec(encoder=FramesEncoderSpec(frame=ENCODERS["strides"])),
    )
    with pytest.raises(ExportError, match="the image encoder frames"):
        session_of(clips.build_from(examples))

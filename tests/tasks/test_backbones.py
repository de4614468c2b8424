"""Backbones from Hugging Face in image tasks: tiny ones with random weights, without a download."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example, ImageSpec
from foveal.errors import SpecError, ValueRangeError
from foveal.models import (
    BackboneSpec,
    CaptionerSpec,
    FramesEncoderSpec,
    TextEncoderSpec,
    VideoClassifierSpec,
    VQAModelSpec,
    backbone_spec,
)
from foveal.specs import from_json, to_json
from foveal.tasks import (
    Captioning,
    CaptioningSpec,
    PredictionSpec,
    VideoClassificationSpec,
    VisualQuestionAnsweringSpec,
)
from tests.tasks.pictures import BARS, bars

pytestmark = pytest.mark.slow

transformers = pytest.importorskip("transformers")
TRACED = PredictionSpec(beam_size=2, max_length=6, trace=True)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def saved(folder: Path, config: Any) -> Any:
    """Save a backbone with random weights to a folder, in the layout of the hub."""
    torch.manual_seed(3)
    model = transformers.AutoBackbone.from_config(config)
    model.save_pretrained(folder)
    return model


@pytest.fixture
def resnet(tmp_path: Path) -> Path:
    config = transformers.ResNetConfig(
        num_channels=3,
        embedding_size=4,
        hidden_sizes=[4, 6],
        depths=[1, 1],
        layer_type="basic",
        out_features=["stage2"],
    )
    saved(tmp_path / "resnet", config)
    return tmp_path / "resnet"


def test_a_caption_is_written_from_its_grid(resnet: Path, tmp_path: Path) -> None:
    spec = backbone_spec(str(resnet))
    assert (spec.stride, spec.patches, spec.num_channels) == (8, False, 3)
    assert from_json(BackboneSpec, to_json(spec)) == spec
    examples = bars(tmp_path / "bars", 4)
    task = replace(BARS, model=replace(BARS.model, encoder=spec)).build_from(examples)
    assert isinstance(task, Captioning)
    (resnet / "model.safetensors").unlink()
    weights = task.model.state_dict()
    backbone = transformers.AutoBackbone.from_config(
        transformers.AutoConfig.from_pretrained(resnet)
    )
    assert {name.removeprefix("encoder.backbone.") for name in weights} >= set(
        backbone.state_dict()
    )

    task.model.eval()
    found = task.predict(examples, TRACED)
    (first, *_), height, width = found, *task.picture(examples[0]).shape[-2:]
    assert first.trace is not None
    assert first.trace.layout == (("grid", -(-height // 8), -(-width // 8), (8, 8)))
    # A bundle needs neither the folder nor the network.
    save_bundle(task, tmp_path / "bundle")
    again = load_bundle(tmp_path / "bundle")
    assert again.predict(examples, TRACED) == found


def test_its_weights_are_those_of_the_folder_and_read_light(resnet: Path) -> None:
    spec = backbone_spec(str(resnet))
    encoder = spec.build().eval()
    model = transformers.ResNetBackbone.from_pretrained(resnet).eval()
    light = torch.rand(2, 3, 16, 24)
    mean, std = (torch.tensor(part).view(3, 1, 1) for part in (spec.mean, spec.std))
    expected = model((light - mean) / std).feature_maps[-1]
    values = encoder(1 - light).values
    torch.testing.assert_close(values, expected.flatten(2).transpose(1, 2))
    assert encoder(torch.rand(1, 3, 17, 9)).layout[1:3] == (3, 2)  # every pixel is in a cell
    fresh = replace(spec, weights=None).build().eval()
    assert not torch.equal(fresh(1 - light).values, values)


def test_patches_lie_side_by_side(tmp_path: Path) -> None:
    config = transformers.Dinov2Config(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=28,
        patch_size=7,
        mlp_ratio=2,
    )
    saved(tmp_path / "dino", config)
    spec = backbone_spec(str(tmp_path / "dino"))
    assert (spec.stride, spec.patches) == (7, True)
    examples = [
        Example(f"{one.source}\tWhat is it?", one.target) for one in bars(tmp_path / "bars", 3)
    ]
    question = TextEncoderSpec(embedding_size=8, hidden_size=8, dropout=0.0)
    task = VisualQuestionAnsweringSpec(
        image=BARS.image, model=VQAModelSpec(encoder=spec, question=question)
    ).build_from(examples)
    task.model.eval()
    trace = task.predict(examples, TRACED)[0].trace
    assert trace is not None
    assert trace.layout.pitch is None
    assert trace.layout.rows == 3  # cells of 16 pixels
    assert sum(trace.weights[0]) == pytest.approx(1, abs=1e-5)


def test_frames_of_a_clip_are_read_by_one(resnet: Path, tmp_path: Path) -> None:
    spec = backbone_spec(str(resnet))
    examples = []
    for number, one in enumerate(bars(tmp_path / "bars", 4)):
        folder = tmp_path / f"clip{number}"
        folder.mkdir()
        Path(str(one.source)).rename(folder / "0.png")
        examples.append(Example(str(folder), str(number % 2)))
    frames = FramesEncoderSpec(frame=spec, hidden_size=8, dropout=0.0)
    task = VideoClassificationSpec(
        image=ImageSpec(height=32, width=96), model=VideoClassifierSpec(encoder=frames)
    ).build_from(examples)
    task.model.eval()
    found = task.predict(examples)
    assert found == [task.predict([example])[0] for example in examples]
    (resnet / "model.safetensors").unlink()
    save_bundle(task, tmp_path / "bundle")
    assert load_bundle(tmp_path / "bundle").predict(examples) == found


def test_what_is_no_backbone_or_would_run_code_is_one_line(resnet: Path, tmp_path: Path) -> None:
    spec = backbone_spec(str(resnet))
    config = json.loads(spec.config)
    for changed, said in (
        ("nonsense", "model_type"),
        (json.dumps(config | {"auto_map": {"AutoBackbone": "theirs.Model"}}), "runs code"),
        (json.dumps({"model_type": "timm_backbone", "backbone": "resnet18"}), "runs code"),
        (json.dumps({"model_type": "no such model"}), "AutoBackbone"),
        (json.dumps({"model_type": "bert"}), "not a vision backbone"),
    ):
        with pytest.raises(SpecError, match=said) as raised:
            replace(spec, config=changed, weights=None).build()
        assert "\n" not in str(raised.value)
    # A pickle is not read, even if there is no other file.
    (resnet / "model.safetensors").rename(resnet / "pytorch_model.bin")
    with pytest.raises(SpecError, match=r"model\.safetensors"):
        spec.build()
    with pytest.raises(SpecError, match="cannot be read"):
        backbone_spec(str(tmp_path / "nothing"))
    with pytest.raises(SpecError, match="for each of 3 channels"):
        replace(spec, mean=(0.5,)).build()
    with pytest.raises(ValueRangeError, match="num_channels"):
        CaptioningSpec(
            image=replace(BARS.image, num_channels=1), model=CaptionerSpec(encoder=spec)
        ).build_from(bars(tmp_path / "bars", 1))

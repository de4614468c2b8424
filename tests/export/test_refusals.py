"""A part without a graph is refused by its name, before anything is written."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from foveal.bundles import save_bundle
from foveal.errors import BundleError, ExportError
from foveal.export import export_bundle
from foveal.models import (
    DecoderSpec,
    HierarchicalSpec,
    LatentHardSpec,
    LatentMonotoneSpec,
    MultiHeadSpec,
    PathSpec,
    PerQueryAttentionSpec,
    Seq2SeqSpec,
    SyntacticSpec,
    TextEncoderSpec,
)
from foveal.models.parts._attention_specs import AbstractAttentionSpec, AttentionSpec
from foveal.models.parts._recurrent_spec import WindowCellSpec
from tests.export.variants import VARIANTS, WORDS, Variant, task_of

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

_SIZES = {"embedding_size": 8, "hidden_size": 16}
_WITHOUT = {PathSpec, MultiHeadSpec, HierarchicalSpec}


def _with_decoder(**settings: object) -> Variant:
    decoder = DecoderSpec(**{**_SIZES, **settings})
    return Variant(replace(VARIANTS["softmax"].model, decoder=decoder))


def _exported(variant: Variant, folder: Path) -> None:
    save_bundle(task_of(variant), folder / "run")
    export_bundle(folder / "run", folder / "export", WORDS)


@pytest.mark.parametrize(
    "kind", sorted({*get_args(AttentionSpec), *get_args(PerQueryAttentionSpec)}, key=str)
)
def test_every_attention_has_a_graph_or_is_refused_by_name(kind: type, tmp_path: Path) -> None:
    if kind in (AbstractAttentionSpec, HierarchicalSpec):  # one is abstract, one needs documents
        return
    variant = _with_decoder(attention=kind())
    if kind not in _WITHOUT:
        _exported(variant, tmp_path)
        assert (tmp_path / "export/model.onnx").is_file()
        return
    with pytest.raises(ExportError, match=f"attention {kind().kind} has no export"):
        _exported(variant, tmp_path)
    assert not (tmp_path / "export").exists()


def test_summed_attentions_are_in_the_list_of_kinds() -> None:
    assert {LatentHardSpec, LatentMonotoneSpec} <= set(get_args(AttentionSpec))


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (TextEncoderSpec(cell=WindowCellSpec(), hidden_size=8), "encoder.cell window"),
        (TextEncoderSpec(cell="textbook_gru", hidden_size=8), "encoder.cell textbook_gru"),
        (TextEncoderSpec(self_attention=SyntacticSpec(), hidden_size=8), "self_attention"),
    ],
)
def test_parts_of_encoders_are_refused_by_name(
    encoder: TextEncoderSpec, message: str, tmp_path: Path
) -> None:
    model = Seq2SeqSpec(encoder=encoder, decoder=DecoderSpec(**_SIZES))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ExportError, match=message):
        _exported(Variant(model), tmp_path)


def test_a_folder_with_other_files_is_kept(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export/thesis.tex").write_text("years of work")
    with pytest.raises(ExportError, match="expected a new folder or an earlier export"):
        _exported(VARIANTS["softmax"], tmp_path)
    assert (tmp_path / "export/thesis.tex").read_text() == "years of work"


def test_an_export_needs_inputs_for_its_test(tmp_path: Path) -> None:
    save_bundle(task_of(VARIANTS["softmax"]), tmp_path / "run")
    with pytest.raises(ExportError, match="expected inputs to test the export with, got none"):
        export_bundle(tmp_path / "run", tmp_path / "export", [])
    with pytest.raises(BundleError, match="this folder does not exist"):
        export_bundle(tmp_path / "missing", tmp_path / "export", [])
    assert not (tmp_path / "export").exists()

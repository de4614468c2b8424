"""The plain model file: its layout, weights equal to those of the graph, and models that have none."""

import hashlib
import json
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from foveal.bundles import save_bundle
from foveal.cli._export import command
from foveal.data import CharacterSpec, LatexSpec, WhitespaceSpec
from foveal.errors import ExportError
from foveal.export import ExportOptions, export_bundle
from foveal.export._storage import Storage
from foveal.models import SyntacticSpec
from foveal.tasks import TransductionSpec
from tests.export.plain_variants import PLAIN, REFUSED
from tests.export.variants import VARIANTS, WORDS, seq2seq, task_of, text

pytest.importorskip("onnxruntime")

_HEAD = 44


@dataclass
class Reader:
    """Reads the types of the file from its bytes."""

    content: bytes
    at: int = 0

    def take(self, form: str) -> Any:
        values: tuple[Any, ...] = struct.unpack_from(f"<{form}", self.content, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values[0] if len(values) == 1 else values

    def string(self) -> str:
        size = self.take("I")
        self.at += size
        return self.content[self.at - size : self.at].decode()

    def strings(self) -> list[str]:
        return [self.string() for _ in range(self.take("I"))]

    def array(self, dtype: str, *shape: int) -> np.ndarray:
        found = np.frombuffer(self.content, dtype, int(np.prod(shape)), self.at)
        self.at += found.nbytes
        return found.reshape(shape)

    def matrix(self) -> np.ndarray:
        kind, rows, columns = self.take("BII")
        if kind < 2:
            return self.array(("<f4", "<f2")[kind], rows, columns)
        scale = self.array("<f4", rows, 1)
        return self.array("i1", rows, columns) * scale


def exported(name: str, folder: Path, storage: Storage = "float32") -> Path:
    """Export a small model with its plain file."""
    save_bundle(task_of(VARIANTS[name]), folder / "run")
    options = ExportOptions(storage=storage, plain=True, license="CC0", data=("made up",))
    export_bundle(folder / "run", folder / "export", WORDS, options)
    return folder / "export"


def test_the_file_has_the_described_sections(tmp_path: Path) -> None:
    folder = exported("copy", tmp_path)
    content = (folder / "model.plain").read_bytes()
    assert content[:12] == b"\x89FVL\r\n\x1a\n\x01\x00\x00\x00"
    assert content[12:_HEAD] == hashlib.sha256(content[_HEAD:]).digest()
    file = Reader(content, _HEAD)
    file.string()  # the version of foveal
    assert (file.string(), file.strings()) == ("CC0", ["made up"])
    tokenizers = [(*file.take("BB"), file.string()) for _ in range(3)]
    assert tokenizers == [(1, 0, ""), (1, 0, ""), (0, 0, "")]
    letters = list("abcdefghijklmnop")
    assert [file.strings() for _ in range(3)] == [letters, letters, []]
    assert file.take("IIddIIdI") == (3, 4000, 2.0, 10.0, 3, 3, 0.0, (1 << 32) - 1)
    assert [file.take("dBd") for _ in range(file.take("I"))] == [(1.0, 1, 0.0)]
    assert file.take("BIIIBBBB") == (0, 8, 8, 1, 1, 0, 0, 0)  # of the encoder
    embedding = task_of(VARIANTS["copy"]).model.state_dict()["encoder.embedding.weight"]
    np.testing.assert_array_equal(file.matrix(), embedding.numpy())


def test_the_file_ends_with_the_self_test(tmp_path: Path) -> None:
    folder = exported("softmax", tmp_path)
    lines = (folder / "selftest.jsonl").read_text(encoding="utf-8").splitlines()
    expected = [json.loads(line) for line in lines]
    content = (folder / "model.plain").read_bytes()
    first = struct.pack("<II", len(WORDS), len(WORDS[0])) + WORDS[0].encode()
    file = Reader(content, content.rindex(first))
    for _, line in zip(range(file.take("I")), expected, strict=True):
        assert (file.string(), file.string()) == (line["text"], "")
        assert file.string() == line["outputs"][0]
        assert file.take("d") == pytest.approx(line["scores"][0], abs=1e-6)
    assert file.at == len(content)


def test_the_manifest_lists_the_file(tmp_path: Path) -> None:
    folder = exported("softmax", tmp_path)
    content = (folder / "model.plain").read_bytes()
    listed = json.loads((folder / "manifest.json").read_text())["files"]["model.plain"]
    assert listed == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize("storage", ["half", "int8"])
def test_stored_weights_are_those_of_the_graph(storage: Storage, tmp_path: Path) -> None:
    folder = exported("input feeding", tmp_path, storage)
    content = (folder / "model.plain").read_bytes()
    kind = {"half": np.float16, "int8": np.int8}[storage]
    found = 0
    for tensor in onnx.load(folder / "model.onnx").graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype != kind:
            continue
        # The graph has transposed matrices, and one tensor for both directions of the encoder.
        rows = [array, array.T] if array.ndim == 2 else list(array)
        found += any(part.tobytes() in content for part in rows)
    assert found >= 10


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_without_plain_form_is_refused_by_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=f"{REFUSED[name]} has no form in a plain model file"):
        exported(name, tmp_path)
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"source": CharacterSpec(normalization="NFC")}, "source.normalization has no form"),
        ({"target": WhitespaceSpec(normalization="NFD")}, "target.normalization has no form"),
        ({"target": LatexSpec()}, "tokenizer latex has no form"),
        ({"model": seq2seq(text(self_attention=SyntacticSpec())).model}, "syntactic has no form"),
    ],
)
def test_other_parts_are_refused_by_name(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    spec: TransductionSpec = replace(task_of(VARIANTS["softmax"]).spec, **changed)
    save_bundle(spec.build(task_of(VARIANTS["softmax"]).vocabularies), tmp_path / "run")
    with pytest.raises(ExportError, match=message):
        export_bundle(tmp_path / "run", tmp_path / "export", WORDS, ExportOptions(plain=True))
    assert not (tmp_path / "export").exists()


def test_every_variant_is_in_one_list() -> None:
    assert {*PLAIN, *REFUSED} == set(VARIANTS)


def test_the_command_adds_the_file(tmp_path: Path) -> None:
    save_bundle(task_of(VARIANTS["softmax"]), tmp_path / "run")
    (tmp_path / "words.txt").write_text("\n".join(WORDS))
    for plain in (False, True):
        command(tmp_path / "run", out=tmp_path / "out", plain=plain, check=tmp_path / "words.txt")
        assert (tmp_path / "out/model.plain").is_file() == plain

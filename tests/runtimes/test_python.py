"""The Python runtime: a wheel that needs no torch, and folders that are refused when they are damaged."""

import hashlib
import json
import os
import random
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from foveal.bundles import save_bundle
from foveal.export import export_bundle
from foveal.runtime import ExportedModelError, load
from tests.export.variants import VARIANTS, WORDS, task_of

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported folder."""
    folder = tmp_path_factory.mktemp("exported")
    save_bundle(task_of(VARIANTS["softmax"]), folder / "run")
    export_bundle(folder / "run", folder / "export", WORDS)
    return folder / "export"


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    """A copy of the folder, to damage."""
    (tmp_path / "export").mkdir()
    for file in exported.iterdir():
        (tmp_path / "export" / file.name).write_bytes(file.read_bytes())
    return tmp_path / "export"


def test_the_wheel_answers_without_torch(exported: Path, tmp_path: Path) -> None:
    """The wheel is built from the sources of the library and put next to numpy and onnxruntime only."""
    wheel_of = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w"]
    subprocess.run(
        [sys.executable, *wheel_of, tmp_path, ROOT / "runtimes/python"],
        check=True,
    )
    (wheel,) = tmp_path.glob("foveal_runtime-*.whl")
    venv.create(tmp_path / "env", with_pip=False)
    # The packages of this environment that the runtime needs, by links: installing them would need a network.
    (target,) = (tmp_path / "env").glob("lib/python*/site-packages")
    found = Path(onnxruntime.__file__).parents[1]
    for name in ("numpy", "numpy.libs", "onnxruntime", "onnxruntime.libs"):
        if (found / name).exists():
            (target / name).symlink_to(found / name)
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); from foveal_runtime import load; "
        "model = load(sys.argv[2]); print(json.dumps([model.self_test(), sorted(sys.modules)]))"
    )
    ran = subprocess.run(
        [tmp_path / "env/bin/python", "-c", code, str(wheel), str(exported)],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert ran.returncode == 0, ran.stderr
    number, modules = json.loads(ran.stdout)
    assert number == len(WORDS)
    assert not {"torch", "foveal", "jaxtyping", "safetensors"} & set(modules)


def test_the_command_answers_lines(exported: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "foveal.runtime", str(exported), "--nbest", "2"],
        input="bad\ncafe\n",
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("\t") for line in ran.stdout.splitlines()]
    assert [(row[0], row[1]) for row in rows] == [
        ("bad", "1"),
        ("bad", "2"),
        ("cafe", "1"),
        ("cafe", "2"),
    ]
    assert rows[0][2] == load(exported).predict("bad").output


@pytest.mark.parametrize("name", ["model.onnx", "model.json", "vocabulary.json"])
def test_a_changed_byte_is_refused(name: str, copy: Path) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(bytes(content))
    with pytest.raises(ExportedModelError, match=rf"{name} has a wrong sha256 checksum"):
        load(copy)


@pytest.mark.parametrize("name", ["model.onnx", "model.json", "vocabulary.json", "manifest.json"])
def test_a_missing_or_short_file_is_refused(name: str, copy: Path) -> None:
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ExportedModelError, match="Restore the folder, or export"):
        load(copy)
    (copy / name).unlink()
    with pytest.raises(ExportedModelError):
        load(copy)


def test_a_newer_format_is_refused(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["format"] = 99
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ExportedModelError, match=r"format 99 .* Install a newer foveal-runtime"):
        load(copy)


def test_hostile_manifests_raise_only_one_kind_of_error(copy: Path) -> None:
    chance, whole = random.Random(1), (copy / "manifest.json").read_bytes()
    refused = 0
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        (copy / "manifest.json").write_bytes(bytes(content))
        try:
            load(copy)
        except ExportedModelError:
            refused += 1
    assert refused > 200  # the others changed a field that is only read by people


def test_settings_out_of_range_are_refused(exported: Path) -> None:
    model = load(exported)
    with pytest.raises(ExportedModelError, match="got nbest=5 and beam_size=2"):
        model.predict("bad", nbest=5, beam_size=2)
    with pytest.raises(ExportedModelError, match="at most 4000 tokens, got 5000"):
        model.predict("a" * 5000)


def test_an_export_that_answers_differently_is_found(copy: Path) -> None:
    lines = (copy / "selftest.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    first["outputs"][0] += "x"
    content = "\n".join([json.dumps(first), *lines[1:]]).encode() + b"\n"
    (copy / "selftest.jsonl").write_bytes(content)
    manifest = json.loads((copy / "manifest.json").read_text())

    manifest["files"]["selftest.jsonl"] = {
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ExportedModelError, match=r"was .* when the model was exported"):
        load(copy).self_test()

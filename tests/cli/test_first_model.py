"""The commands of docs/first_model.md, on a cut of the data that the page has."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from examples.support import DATA

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/first_model.md"
G2P = DATA / "g2p_sigmorphon2021/low"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 200
SIZES = {"train": 100, "dev": 10, "test": 10}  # lines of the cut


def commands() -> list[str]:
    blocks = CONSOLE.findall(PAGE.read_text(encoding="utf-8"))
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    if not G2P.exists():
        pytest.skip("the data set is not here")
    for name, size in SIZES.items():
        lines = (G2P / f"ice_{name}.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / f"{name}.tsv").write_text("".join(lines[:size]), encoding="utf-8")
    (tmp_path / "words.txt").write_text("afar\nauðn\n", encoding="utf-8")
    program = shlex.join([sys.executable, "-m", "foveal.cli"])
    for command in commands():
        cut = " --set training.epochs=2" if command.startswith("foveal fit") else ""
        done = subprocess.run(
            command.replace("foveal", program, 1) + cut,
            shell=True,
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            timeout=SECONDS,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout or ">" in command
    answers = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(answers) == 2


def test_the_page_has_the_four_commands() -> None:
    used = {command.split()[1] for command in commands()}
    assert used == {"fit", "evaluate", "predict", "explain-config"}

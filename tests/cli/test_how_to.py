"""Every command of the how-to guides runs on the first lines of the samples, with five updates.

A guide trains for a minute. This test adds `training.steps` to `foveal fit`, and shortens each file
after `foveal data samples`. Everything else is verbatim.
"""

import re
import runpy
import shlex
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest

from foveal.datasets import sample
from foveal.datasets._samples import NAMES
from tests.cli.test_commands import foveal

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for path in (ROOT / "docs/how_to").glob("*.md") if path.stem != "index")
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r'^```py title="(\S+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TEXT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHORT = ("--set", "training.epochs=none", "--set", "training.steps=5")
NUM_LINES = 40
# A literal with line breaks, such as $'first\nsecond', which shlex does not support.
ANSI = re.compile(r"\$'([^']*)'")


def commands(page: Path) -> list[str]:
    """Return the commands of a page, without the prompt and with continued lines joined."""
    blocks = CONSOLE.findall(page.read_text(encoding="utf-8"))
    lines = (line for block in blocks for line in block.replace("\\\n", " ").splitlines())
    return [line.removeprefix("$ ") for line in lines]


def cut(folder: Path) -> None:
    """Keep the first lines of each text file; drop a sentence or story that is cut."""
    for path in folder.rglob("*"):
        if path.suffix in (".tsv", ".jsonl", ".txt"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[:NUM_LINES]), encoding="utf-8")
        elif path.suffix == ".conllu":
            sentences = path.read_text(encoding="utf-8").split("\n\n")
            path.write_text("\n\n".join(sentences[: NUM_LINES // 2]) + "\n\n", encoding="utf-8")


def run(command: str, folder: Path) -> None:
    """Run a command of a guide; `foveal` runs in this process."""
    literal = ANSI.sub(lambda found: shlex.quote(found[1].replace(r"\n", "\n")), command)
    call, _, target = literal.partition(" > ")
    words = shlex.split(call)
    if words[0] == "python":
        with chdir(folder):
            runpy.run_path(words[1], run_name="__main__")
        return
    if words[0] != "foveal":
        done = subprocess.run(command, shell=True, cwd=folder, check=False)
        assert done.returncode == 0, command
        return
    more = SHORT if words[1] == "fit" else ()
    without_limit = [word for word in words[1:] if not word.startswith("training.epochs=")]
    if without_limit != words[1:]:
        without_limit.remove("--set")
    done = foveal(*without_limit, *more, folder=folder)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    if target:
        (folder / target).write_text(done.stdout, encoding="utf-8")
    if words[1] == "data":
        cut(folder / "samples")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_guide_run(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content, encoding="utf-8")
    for command in commands(page):
        run(command, tmp_path)
    for name in re.findall(r"--out (\S+\.html)", text):
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_shows_all_steps(page: Path) -> None:
    used = {words[1] for words in map(str.split, commands(page)) if words[0] == "foveal"}
    assert {"fit", "evaluate", "predict", "explain"} <= used
    assert 60 <= len(page.read_text(encoding="utf-8").splitlines()) <= 140


def test_examples_of_files_are_lines_of_the_samples() -> None:
    lines = {
        line
        for name in NAMES
        for path in sample(name).glob("train*")
        for line in path.read_text(encoding="utf-8").splitlines()
    }
    for page in PAGES:
        # Other formats than the sample, generated clips and generated images.
        if page.stem in ("tagging", "clips", "image_classification"):
            continue
        shown = TEXT.findall(page.read_text(encoding="utf-8"))[0].splitlines()
        assert len(shown) >= 3
        assert set(shown) <= lines, page


def test_the_index_lists_every_guide() -> None:
    index = (ROOT / "docs/how_to/index.md").read_text(encoding="utf-8")
    assert all(f"({page.name})" in index for page in PAGES)

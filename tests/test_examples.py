"""Every file in examples/ runs to its end as a script, with warnings as errors.

An example that trains on a data set runs on a small part of it, and is skipped if the data is absent.
An example that generates its data trains for a short time. Each example checks that its model beats a
baseline.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MAX_SECONDS = 300  # each takes about 20 to 35 s on an idle core
CUTS = {
    "crf_tagger.py": ("--cut", "400", "--epochs", "12"),
    "dependency_parser.py": ("--cut", "300", "--epochs", "8"),
    "character_language_model.py": ("--cut", "3000", "--epochs", "3"),
    "sentiment.py": ("--cut", "2000", "--epochs", "3"),
}
SHORT = {
    "copy_and_reverse.py": ("--updates", "200"),
    "prefix_to_infix.py": ("--updates", "250"),
    "text_to_speech.py": ("--updates", "20"),
}
MAX_LINES = {
    "crf_tagger.py": 29,
    "dependency_parser.py": 29,
    "character_language_model.py": 59,
    "sentiment.py": 39,
    "copy_and_reverse.py": 59,
    "prefix_to_infix.py": 59,
}


def run(example: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(example), *(CUTS | SHORT).get(example.name, ())],
        cwd=folder,
        env=os.environ | environment,
        timeout=MAX_SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    done = run(example, tmp_path)
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("skipped:"):
        pytest.skip(done.stdout)


@pytest.mark.parametrize("name", CUTS)
def test_without_data_the_example_says_so_and_ends_well(name: str, tmp_path: Path) -> None:
    done = run(ROOT / "examples" / name, tmp_path, FOVEAL_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"skipped: data not found at {tmp_path}")


@pytest.mark.parametrize("name", MAX_LINES)
def test_the_example_is_as_short_as_promised(name: str) -> None:
    source = (ROOT / "examples" / name).read_text(encoding="utf-8")
    end_of_docstring = ast.parse(source).body[0].end_lineno
    lines = [line for line in source.splitlines()[end_of_docstring:] if line.strip()]
    assert len(lines) <= MAX_LINES[name]

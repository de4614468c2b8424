"""User-defined parts on Ray: workers run the file that the user named, and no other."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from benchmarks.clusters import SECONDS, process

pytestmark = pytest.mark.slow

RECIPE = """
from dataclasses import dataclass
from typing import Literal

from foveal.data import tsv
from foveal.models import (
    AbstractScorerSpec, BilinearSpec, DecoderSpec, Seq2SeqSpec, SoftmaxSpec, TextEncoderSpec
)
from foveal.tasks import TransductionSpec
from foveal.training import Run, TrainingSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnSpec(AbstractScorerSpec):
    kind: Literal["own"] = "own"

    def build(self, query_size, value_size):
        return BilinearSpec().build(query_size, value_size)


SPECS = (OwnSpec,)


def run():
    attention = SoftmaxSpec(scorer=OwnSpec())
    decoder = DecoderSpec(hidden_size=8, embedding_size=8, attention=attention)
    model = Seq2SeqSpec(encoder=TextEncoderSpec(hidden_size=8, embedding_size=8), decoder=decoder)
    training = TrainingSpec(steps=4, batch_size=4)
    return Run(
        task=TransductionSpec(model=model), train=tsv("words.tsv"), dev=tsv("words.tsv"), training=training
    )
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create words and a recipe in the current folder: commands name files relative to it."""
    words = [f"{first}{second}" for first in "abcd" for second in "abcd"]
    (tmp_path / "words.tsv").write_text("".join(f"{word}\t{word.upper()}\n" for word in words))
    (tmp_path / "words.txt").write_text("ab\ncd\n")
    (tmp_path / "recipe.py").write_text(RECIPE)
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def foveal(*words: str) -> None:
    """Run a command, which must succeed."""
    command = [sys.executable, "-m", "foveal.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(4 * SECONDS)
def test_workers_have_the_parts_of_the_recipe(folder: Path) -> None:
    recipe, specs = ("--recipe", "recipe.py:run"), ("--with-specs", "recipe.py")
    ray = ("--ray", "--workers", "1")
    foveal("fit", *recipe, "--out", "model", *ray)
    assert "recipe.OwnSpec" in (folder / "model" / "spec.json").read_text()
    foveal("bulk", "model", "--in", "words.txt", "--out", "answers", *specs, *ray)
    assert json.loads((folder / "answers" / "words.json").read_text())["answered"] == 2
    sweep = ("--trials", "1", "--workers", "1")
    foveal("sweep", *recipe, "--out", "sweep", *sweep)
    assert "recipe.OwnSpec" in (folder / "sweep" / "best" / "spec.json").read_text()
    serve = ["serve", "model", *specs, "--ray", "--replicas", "1", "--port", "0"]
    with process(["-m", "foveal.cli", *serve]) as server:
        assert server.stdout is not None
        found = re.search(r"http://[\d.:]+", server.stdout.readline())
        assert found is not None
        body = json.dumps({"inputs": ["ab"]}).encode()
        url = f"{found[0]}/v1/models/model/predict"
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            assert json.load(reply)["answers"][0]["source"] == "ab"
        server.terminate()
        assert server.wait(SECONDS) == 0

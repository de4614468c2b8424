"""A treebank, from `fit` to a server."""

import json
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.cli.test_commands import foveal, process
from tests.inspection.pages import check_page
from tests.serving.conftest import GOOD, serving
from tests.tasks.treebanks import RICH, write_treebank

pytestmark = pytest.mark.slow

RECIPE = """
from foveal.data import SpellingSpec, treebank
from foveal.models import ParserSpec
from foveal.tasks import ParsingSpec
from foveal.training import Run, TrainingSpec


def recipe() -> Run:
    model = ParserSpec(
        embedding_size=16, hidden_size=24, num_layers=2, arc_size=24, label_size=16, dropout=0.1
    )
    spelling = SpellingSpec(num_buckets=500)
    return Run(
        task=ParsingSpec(min_count=1, model=model, spelling=spelling, word_dropout=0.0),
        train=treebank("train.conllu"),
        dev=treebank("dev.conllu"),
        training=TrainingSpec(steps=100, batch_tokens=300, learning_rate=6e-3, seed=1),
    )
"""


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data files and a model."""
    folder = tmp_path_factory.mktemp("treebank")
    write_treebank(folder / "train.conllu")
    write_treebank(folder / "dev.conllu")
    (folder / "recipe.py").write_text(RECIPE, encoding="utf-8")
    done = process("fit", "--recipe", "recipe.py", "--out", "run", folder=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "run/report.html").exists()
    return folder


def test_a_parser_is_scored_on_trees_and_not_on_tags(fitted: Path) -> None:
    done = foveal("evaluate", "run", "dev.conllu", "--json", folder=fitted)
    scores = json.loads(done.stdout)["metrics"]
    assert scores["las"]["value"] >= 90
    assert scores["uas"]["value"] >= scores["las"]["value"]


def test_conllu_goes_in_and_out(fitted: Path) -> None:
    (fitted / "rich.conllu").write_text(RICH, encoding="utf-8")
    done = foveal("predict", "run", "rich.conllu", "--format", "conllu", folder=fitted)
    assert done.returncode == 0, done.stderr

    def others(text: str) -> list[list[str]]:
        rows = [line.split("\t") for line in text.split("\n")]
        return [row[:6] + row[8:] if row[0].isdecimal() else row for row in rows]

    assert others(done.stdout) == others(RICH)
    line = done.stdout.split("\n")[2].split("\t")
    (answer,) = foveal(
        "predict", "run", folder=fitted, text="They do n't 1\u00a0000\n"
    ).stdout.splitlines()
    assert ":".join(line[6:8]) == answer.split("\t")[2].split()[0]


def test_only_a_parser_writes_conllu(tmp_path: Path) -> None:
    done = foveal("predict", GOOD, "--format", "conllu", folder=tmp_path, text=RICH)
    assert done.returncode == 2
    assert "Transduction: only a parser writes CoNLL-U" in done.stderr


def test_an_explanation_has_the_arcs(fitted: Path) -> None:
    done = foveal("explain", "run", "The cat sleeps .", "--out", "page.html", folder=fitted)
    assert done.returncode == 0, done.stderr
    page = (fitted / "page.html").read_text(encoding="utf-8")
    check_page(page)
    assert "heads the sentence" in page


def test_bulk_and_a_server_answer_as_predict_does(fitted: Path, tmp_path: Path) -> None:
    text = "The cat sleeps .\nThey buy books .\n"
    (fitted / "lines.txt").write_text(text, encoding="utf-8")
    rows = foveal("predict", "run", "lines.txt", folder=fitted).stdout.splitlines()
    expected = [row.split("\t")[2] for row in rows]
    done = foveal("bulk", "run", "--in", "lines.txt", "--out", "answers", folder=fitted)
    assert done.returncode == 0, done.stderr
    table = parquet.read_table(fitted / "answers/lines.parquet").to_pylist()
    assert [row["output"] for row in table] == expected
    with serving(tmp_path, fitted / "run") as server:
        answer = server.ask("/v1/models/run/predict", {"inputs": text.splitlines()})
        assert [one["output"] for one in answer.data["answers"]] == expected

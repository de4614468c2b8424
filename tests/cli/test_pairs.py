"""Two texts and a label, from `fit` to `explain`."""

import json
from pathlib import Path

import pytest

from foveal.bundles import load_bundle
from foveal.tasks import PairClassification
from tests.cli.test_commands import foveal, process
from tests.inspection.pages import check_page
from tests.tasks.tiny import pairs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data files and a model."""
    folder = tmp_path_factory.mktemp("pairs")
    rows = [f"{example.source}\t{example.target}\n" for example in pairs(300)]
    (folder / "train.tsv").write_text("".join(rows[60:]), encoding="utf-8")
    (folder / "test.tsv").write_text("".join(rows[:60]), encoding="utf-8")
    done = process(
        *("fit", "train.tsv", "--out", "run"),
        *("--set", "hidden_size=32", "--set", "encoder.self_attention=syntactic"),
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "second text in the second, target in the third" in done.stdout
    assert "pair classification: two texts and a label, 2 different labels" in done.stdout
    return folder


def test_a_model_of_pairs_is_fitted_and_scored(fitted: Path) -> None:
    assert isinstance(load_bundle(fitted / "run"), PairClassification)
    assert (fitted / "run/report.html").exists()
    done = foveal("evaluate", "run", "test.tsv", "--json", folder=fitted)
    scores = json.loads(done.stdout)["metrics"]
    assert scores["accuracy"]["value"] >= 85


def test_answers_are_for_the_first_two_columns(fitted: Path) -> None:
    text = "a good ship\tgood ship\na good ship\tthe cat\tno\n"
    done = foveal("predict", "run", "--header", folder=fitted, text=text)
    head, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert head == ["source", "second", "rank", "output", "score", "confidence"]
    assert {len(row) for row in rows} == {len(head)}
    assert [row[:4] for row in rows] == [
        ["a good ship", "good ship", "1", "yes"],
        ["a good ship", "the cat", "1", "no"],
    ]
    done = foveal("predict", "run", folder=fitted, text="a good ship\n")
    assert done.returncode == 2
    assert "one text, expected two, in 'a good ship'" in done.stderr


def test_an_answer_is_explained_by_words_and_trees(fitted: Path) -> None:
    words = ("explain", "run", "a good ship", "--second", "good ship")
    done = foveal(*words, "--json", folder=fitted)
    found = json.loads(done.stdout)
    assert found["output"] == "yes"
    assert found["sources"] == ["a", "good", "ship", "good", "ship"]
    assert [trace["kind"] for trace in found["others"]] == ["softmax", "syntactic", "syntactic"]
    changes = [row[0] for row in found["erased"]]
    assert len(changes) == 5
    assert min(changes) < 0  # without some word the answer is less probable
    done = foveal(*words, "--out", "page.html", folder=fitted)
    assert done.returncode == 0, done.stderr
    text = (fitted / "page.html").read_text(encoding="utf-8")
    check_page(text)
    assert text.count("<svg") >= 4


def test_the_doctor_reads_a_run_of_pairs(fitted: Path) -> None:
    done = foveal("doctor", "run", "--json", folder=fitted)
    assert done.returncode == 0, done.stderr
    found = {finding["name"] for finding in json.loads(done.stdout)["findings"]}
    assert not any("padding" in name for name in found)

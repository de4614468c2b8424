"""The dialog models train for a few steps on small files, and are scored."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.lectures.__main__ import main
from benchmarks.lectures._dialog import LABELS
from benchmarks.results import Results
from foveal.data import Example
from foveal.models import DocumentEncoderSpec, TextEncoderSpec
from foveal.tasks import TransductionSpec
from recipes import dialog

pytestmark = pytest.mark.slow
TURNS = [
    ["user", "find a movie with jane doe in oslo"],
    ["system", "do you like comedy ?"],
    ["user", "yes please"],
    ["system", "comedy with jane doe ?"],
    ["user", "right"],
    ["system", "playing comedy with jane doe in oslo"],
]


def save_dialogs(folder: Path) -> None:
    """Write dialogs of a film service, and one of another service, in the form of the corpus."""
    for name, number in (("train", 12), ("dev", 12), ("test", 3)):
        services = ["Movies_1"] * number + ["Hotels_2"]
        path = folder / f"sgd_dialogues/{name}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as file:
            for service in services:
                file.write(json.dumps({"service": service, "turns": TURNS}) + "\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which the recipe finds small corpora and short runs."""
    monkeypatch.setattr(dialog, "ROOT", tmp_path)
    monkeypatch.setattr(dialog, "FOLDER", tmp_path / "cache")
    monkeypatch.setattr(dialog, "DATA", tmp_path)
    save_dialogs(tmp_path)
    monkeypatch.setattr(dialog, "NUM_FACTS", {"train": 40, "dev": 10, "test": 20})
    monkeypatch.setattr(dialog, "STEPS", {"film": 12, "sgd": 4, "facts": 4})
    monkeypatch.setattr(dialog, "SIZE", dict.fromkeys(dialog.CORPORA, 8))
    return tmp_path


def test_dialogs_are_fitted_and_scored(folder: Path) -> None:
    given = ["--runs", str(folder / "runs"), "--seeds", "1"]
    cases = ["film_last", "film_levels_attention", "sgd_last", "facts_levels_attention"]
    main(["fit", "dialog", *given, "--cases", *cases])
    main(["score", "dialog", *given, "--results", str(folder / "results")])
    rows = {row.name: row for row in Results.load(folder / "results/dialog.json").rows}
    for figure in ("perplexity", "BLEU", "distinct-1", "distinct-2", "CPU minutes"):
        for name in ("last utterance", "two levels with attention"):
            assert f"film, {name}: {figure}" in rows
        assert f"sgd, last utterance: {figure}" in rows
    assert rows["film, last utterance: perplexity"].value > 1
    parts = [rows[f"facts, two levels with attention: k = {k}"].value for k in range(1, 6)]
    assert rows["facts, two levels with attention: right"].value == pytest.approx(sum(parts) / 5)
    assert "facts, flat: right" not in rows
    again = ["--cases", "sgd_last", "--seeds", "2", "1", "--results", str(folder / "results")]
    main(["score", "dialog", "--runs", str(folder / "runs"), *again])  # seed 2 was not fitted
    results = Results.load(folder / "results/dialog.json")
    assert {row.name: row.seeds for row in results.rows} == dict.fromkeys(rows, (1,))
    assert results.spec.keys() == set(cases)
    shown = json.loads((folder / "results/shown/dialog.json").read_text(encoding="utf-8"))
    assert shown["film_levels_attention"][0]["trace"]["layout"]["kind"] == "sentences"


@pytest.mark.usefixtures("folder")
def test_a_corpus_has_the_responses_of_its_services() -> None:
    film, sgd = (list[Example](dialog.part(corpus, "dev", "flat")) for corpus in ("film", "sgd"))
    assert (len(film), len(sgd)) == (12 * 3, 13 * 3)
    assert sgd[0].target == "do you like comedy ?"


@pytest.mark.usefixtures("folder")
def test_the_systems_differ_in_their_turns_and_levels() -> None:
    assert set(LABELS) == set(dialog.SYSTEMS)
    for case in dialog.CASES:
        run = dialog.recipe(case)
        assert isinstance(run.task, TransductionSpec)
        has_levels = isinstance(run.task.model.encoder, DocumentEncoderSpec)
        assert has_levels == ("levels" in case)
        assert has_levels or isinstance(run.task.model.encoder, TextEncoderSpec)
        assert (run.task.model.decoder.attention is not None) == case.endswith("attention")
        turns = {str(example.source).count("\n") + 1 for example in run.test or ()}
        assert (turns == {1}) == case.endswith("last")

"""Document classification, from raw files to the tables, with models trained for a few steps."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.lectures.__main__ import EXPERIMENTS, main
from benchmarks.results import Results
from examples.support import DATA
from foveal.specs import from_json, to_json
from foveal.training import Run
from recipes import documents
from tests.tasks import tiny

NEEDED = ("movie_reviews_pang_lee", "imdb_aclImdb")
pytestmark = [
    pytest.mark.skipif(
        not all(DATA.joinpath(name).exists() for name in NEEDED),
        reason=f"data not found at {DATA}; set FOVEAL_DATA",
    ),
    pytest.mark.slow,
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with a few documents where the recipe looks for them."""
    monkeypatch.setattr(documents, "FOLDER", tmp_path / "cache")
    labels = {"yes": "praise", "no": "blame"}
    drawn = [
        documents.Review(str(one.source), labels[one.target or ""]) for one in tiny.documents(60)
    ]
    for name in ("reviews_0", "reviews_1", "imdb"):
        documents.write(tmp_path / f"cache/{name}_train.jsonl", drawn[20:])
        documents.write(tmp_path / f"cache/{name}_test.jsonl", drawn[:20])
    documents.write(tmp_path / "cache/imdb_dev.jsonl", drawn[:20])
    return tmp_path


def short(run: Run) -> Run:
    """Train for forty steps: long enough that the model finds some positive documents."""
    return replace(run, training=replace(run.training, epochs=None, steps=40, batch_size=8))


def test_documents_are_fitted_and_scored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = EXPERIMENTS["documents"]
    fake = experiment._replace(run=lambda case: short(experiment.run(case)))
    monkeypatch.setitem(EXPERIMENTS, "documents", fake)
    reviews = [f"reviews_{name}_{fold}" for name in documents.SYSTEMS[:4] for fold in (0, 1)]
    rest = ["--runs", str(folder / "runs"), "--cases", *reviews, "imdb_recurrent"]
    main(["fit", "documents", *rest])
    main(["score", "documents", *rest, "--results", str(folder / "results")])
    imdb, rows = (
        {row.name: row for row in Results.load(folder / f"results/documents_{corpus}.json").rows}
        for corpus in ("imdb", "reviews")
    )
    assert rows["hierarchical: folds"].value == 2
    assert imdb["recurrent: folds"].value == 1
    assert imdb["recurrent: accuracy"].target == 90.5
    apart = rows["hierarchical: accuracy"].value - rows["mean of words: accuracy"].value
    difference = rows["hierarchical - mean of words: difference"].value
    assert difference == pytest.approx(apart)
    lengths = Results.load(folder / "results/documents_reviews_by_length.json").rows
    own = [row.value for row in lengths if row.name.endswith(": mean of words")]
    assert len(own) == 10
    assert sum(own) / 10 == pytest.approx(rows["mean of words: accuracy"].value)
    words = Results.load(folder / "results/attended_words.json").rows
    times = {row.name: row.value for row in words if row.unit == "times"}
    assert {name.partition(": ")[0] for name in times} <= set(tiny.WORDS)
    assert words[0].value == max(times.values()) >= 1
    shown = json.loads((folder / "results/shown/documents.json").read_text(encoding="utf-8"))
    assert shown["hierarchical"][0]["trace"]["layout"]["kind"] == "sentences"


def test_every_case_has_its_json(folder: Path) -> None:
    assert folder.exists()
    for system in documents.SYSTEMS:
        run = documents.recipe(f"reviews_{system}_1")
        assert from_json(Run, to_json(run)) == run
    assert documents.imdb_mean() == documents.recipe("imdb_mean")


def test_folds_divide_the_reviews() -> None:
    folds = [list(documents.reviews(f"reviews_{fold}_test")) for fold in documents.FOLDS]
    assert [len(fold) for fold in folds] == [200] * 10
    assert all(sum(one.label == "praise" for one in fold) == 100 for fold in folds)
    train = list(documents.reviews("reviews_3_train"))
    assert len(train) == 1800
    assert sorted(train + folds[3]) == sorted(one for fold in folds for one in fold)
    lines = [line.split() for one in folds[0] for line in one.text.splitlines()]
    assert max(map(len, lines)) == documents.MOST_WORDS
    assert min(map(len, lines)) > 0


def test_reviews_of_imdb_are_cut_into_sentences() -> None:
    first = next(documents.reviews("imdb_test"))
    assert first.label in ("praise", "blame")
    assert len(first.text.splitlines()) > 1
    assert "<br" not in first.text
    dev = [one.label for one in documents.reviews("imdb_dev")]
    assert (dev.count("praise"), dev.count("blame")) == (1250, 1250)

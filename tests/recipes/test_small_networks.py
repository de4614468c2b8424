"""The recipes of trees, of contexts and of logical forms, fitted for a few steps on tiny files, and scored."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.lectures.__main__ import EXPERIMENTS, main
from benchmarks.results import Results
from foveal.training import Run
from recipes import cogs, context, self_attention_lm, sentence_trees

pytestmark = pytest.mark.slow

TREES = ["(3 (2 It) (4 works))", "(1 (2 It) (0 (1 never) (3 works)))", "(4 (3 good) (2 .))"] * 4
FORMS = [
    "Ella ate Noah .\teat . agent ( x _ 1 , Ella ) AND eat . theme ( x _ 1 , Noah )\tin_distribution",
    "A cat ate .\tcat ( x _ 1 ) AND eat . agent ( x _ 2 , x _ 1 )\tin_distribution",
] * 6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a data folder with tiny files where the recipes look for them."""
    for recipe in (sentence_trees, cogs, context, self_attention_lm):
        monkeypatch.setattr(recipe, "DATA", tmp_path)
        monkeypatch.setattr(recipe, "FOLDER", tmp_path / "cache")
    for recipe in (context, self_attention_lm):
        monkeypatch.setattr(recipe, "PLAYS", tmp_path / "input.txt.gz")
    monkeypatch.setattr(context, "SIZES", {"train": 60, "dev": 12, "test": 24})
    _write(context.PLAYS, ["to be or not to be"] * 40)
    for part in ("train", "dev", "test"):
        _write(tmp_path / f"sst_trees/{part}.txt.gz", TREES)
        _write(tmp_path / f"cogs/{part}.tsv.gz", FORMS)
    return tmp_path


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def _scored(
    name: str, recipe: ModuleType, cases: Sequence[str], folder: Path, patch: pytest.MonkeyPatch
) -> dict[str, float]:
    """Fit the cases for two steps, score them, and return the figures."""

    def short(case: str) -> Run:
        run = recipe.recipe(case)
        return replace(run, training=replace(run.training, epochs=None, steps=2))

    patch.setitem(EXPERIMENTS, name, EXPERIMENTS[name]._replace(run=short))
    rest = ["--runs", str(folder), "--cases", *cases, "--seeds", "1"]
    main(["fit", name, *rest])
    main(["score", name, *rest, "--results", str(folder)])
    return {row.name: row.value for row in Results.load(folder / f"{name}.json").rows}


def test_trees_are_fitted_and_scored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = ("given", "chain", "convolution")
    found = _scored("sentence_trees", sentence_trees, cases, folder, monkeypatch)
    assert {f"{case}: accuracy" for case in cases} < found.keys()
    assert "given - chain: difference" in found


def test_the_phrases_of_a_tree() -> None:
    found = sentence_trees.phrases_of("(1 (2 It) (0 (1 never) (3 works)))")
    assert [phrase.words for phrase in found] == [
        "it",
        "never",
        "works",
        "never works",
        "it never works",
    ]
    assert found[-1] == sentence_trees.Phrase("( it ( never works ) )", "it never works", 1)


def test_contexts_are_fitted_and_scored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = ("distance_window_4", "distance_gru", "shakespeare_window_2")
    found = _scored("context", context, cases, folder, monkeypatch)
    for distance in context.DISTANCES:
        assert 0 <= found[f"distance, window of 4: distance {distance}"] <= 100
    assert found["shakespeare, window of 2: perplexity"] > 1


def test_language_models_with_self_attention_are_fitted_and_scored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = ("characters_transformer", "data_lstm_2")
    found = _scored("self_attention_lm", self_attention_lm, cases, folder, monkeypatch)
    size = int(found["plays, characters, transformer: weights"])
    bits = found["plays, characters, transformer: bits per character"]
    assert found[f"size of transformer, {size}: bits per character"] == bits > 0
    # Half of the 34 training lines, each of 18 characters and its end.
    assert found[f"data of lstm, {17 * 19}: bits per character"] > 0
    texts = json.loads((folder / "texts/self_attention_lm.json").read_text(encoding="utf-8"))
    assert [each["temperature"] for each in texts["characters_transformer"]] == [0.3, 0.7, 1.0]
    again = ["--cases", "data_lstm_2", "--runs", str(folder), "--results", str(folder)]
    main(["score", "self_attention_lm", *again])
    results = Results.load(folder / "self_attention_lm.json")
    assert {row.name for row in results.rows} == found.keys()
    assert results.spec.keys() == set(cases)
    assert (
        json.loads((folder / "texts/self_attention_lm.json").read_text(encoding="utf-8")) == texts
    )
    heads = json.loads((folder / "shown/self_attention_lm.json").read_text(encoding="utf-8"))
    assert len(heads["characters_transformer"]) == 2 * 4


def test_a_generated_line_ends_with_its_key() -> None:
    for line in context.generated("dev"):
        body, key = line.split(context.MARK)
        assert key == body[0].upper()
        assert len(body) in context.DISTANCES


def test_logical_forms_are_fitted_and_scored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = {name: gap for name, gap in cogs.GAPS.items() if "agent" in name.split(",")[0][-5:]}
    monkeypatch.setattr(cogs, "GAPS", gaps)
    found = _scored("cogs", cogs, ("copy",), folder, monkeypatch)
    assert 0 <= found["test: copy"] <= 100
    assert 0 <= found["word to agent, name: copy"] <= 100


@pytest.mark.usefixtures("folder")
def test_a_noun_gets_a_new_role() -> None:
    assert next(cogs.novel(cogs.Gap("Lina", "theme"))) == (
        "Ella ate Lina .",
        "eat . agent ( x_1 , Ella ) AND eat . theme ( x_1 , Lina )",
    )
    assert next(cogs.novel(cogs.Gap("shark", "agent"))) == (
        "A shark ate .",
        "shark ( x_1 ) AND eat . agent ( x_2 , x_1 )",
    )

"""Entailment, from raw files to the tables, with models trained for a few steps."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.lectures import _entailment
from benchmarks.lectures.__main__ import EXPERIMENTS, main
from benchmarks.lectures._induced_parses import Parsed, attached, left_chain, right_chain
from benchmarks.results import Results
from examples.support import DATA
from foveal.data import TextPair
from foveal.specs import from_json, to_json
from foveal.training import Run
from recipes import entailment, given_heads
from tests.tasks.tiny import pairs

NEEDED = ("sick_nli", "snli_dev_test", "cad_nli", "nli_extra", "ud_english_ewt")
pytestmark = [
    pytest.mark.skipif(
        not all(DATA.joinpath(name).exists() for name in NEEDED),
        reason=f"data not found at {DATA}; set FOVEAL_DATA",
    ),
    pytest.mark.slow,
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with a few pairs where the recipe looks for them, long enough for a view."""
    monkeypatch.setattr(entailment, "FOLDER", tmp_path / "cache")
    labels = {"yes": "entailment", "no": "contradiction"}
    for part in ("train", "dev", "test"):
        drawn = [(one.input_as(TextPair), labels[one.target or ""]) for one in pairs(40)]
        found = [
            entailment.Pair(
                f"the old ship a cat {pair.first}", f"a good ship the cat {pair.second}", label
            )
            for pair, label in drawn
        ]
        entailment.write(tmp_path / f"cache/sick_{part}.tsv", found)
    return tmp_path


def short(run: Run) -> Run:
    """Train for four steps."""
    return replace(run, training=replace(run.training, epochs=None, steps=4, batch_size=8))


def test_entailment_is_fitted_and_scored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = EXPERIMENTS["entailment"]
    fake = experiment._replace(run=lambda case: short(experiment.run(case)))
    monkeypatch.setitem(EXPERIMENTS, "entailment", fake)
    cases = ["sick_none", "sick_soft", "sick_tree"]
    rest = ["--runs", str(folder / "runs"), "--cases", *cases, "--seeds", "1", "2"]
    main(["fit", "entailment", *rest])
    main(["score", "entailment", *rest, "--results", str(folder / "results")])
    rows = {row.name: row for row in Results.load(folder / "results/entailment_sick.json").rows}
    assert all(0 <= rows[f"{heads}: accuracy"].value <= 100 for heads in ("none", "soft", "tree"))
    difference = rows["tree - soft: difference"]
    apart = rows["tree: accuracy"].value - rows["soft: accuracy"].value
    assert difference.value == pytest.approx(apart)
    assert 0 < rows["tree - soft: p of no difference"].value <= 1
    parses = {row.name: row for row in Results.load(folder / "results/induced_parses.json").rows}
    assert set(parses) >= {"left chain: attached", "right chain: attached", "sick_tree: attached"}
    assert parses["sick_tree: undirected"].value >= parses["sick_tree: attached"].value
    shown = json.loads((folder / "results/shown/entailment.json").read_text(encoding="utf-8"))
    kinds = [one["trace"]["kind"] for one in shown["sick_tree"]]
    assert kinds == ["softmax", "syntactic", "syntactic"] * 2


def test_given_heads_and_word_by_word_attention_are_fitted_and_scored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases that are scored later keep the rows of earlier ones."""

    def chain(texts: Iterable[str]) -> dict[str, str]:
        """Attach every word to the one before."""
        return {
            text: " ".join(f"{word}:{head}" for head, word in enumerate(text.split()))
            for text in texts
        }

    monkeypatch.setattr(given_heads, "headed", chain)
    monkeypatch.setattr(_entailment, "_save_parser", lambda *_: None)
    experiment = EXPERIMENTS["entailment"]
    fake = experiment._replace(run=lambda case: short(experiment.run(case)))
    monkeypatch.setitem(EXPERIMENTS, "entailment", fake)
    results = folder / "results"
    for cases in (["sick_none", "sick_word_by_word"], ["sick_parent"]):
        rest = ["--runs", str(folder / "runs"), "--cases", *cases, "--seeds", "1"]
        main(["fit", "entailment", *rest])
        main(["score", "entailment", *rest, "--results", str(results)])
    names = {row.name for row in Results.load(results / "entailment_sick.json").rows}
    assert {"none: accuracy", "parent: accuracy"} <= names
    assert "word_by_word: accuracy" not in names
    by_word = Results.load(results / "word_by_word_sick.json").rows
    assert by_word[0].name == "word_by_word: accuracy"
    shown = json.loads((results / "shown/entailment.json").read_text(encoding="utf-8"))
    kinds = [one["trace"]["kind"] for one in shown["sick_parent"]]
    assert kinds == ["softmax", "given_heads", "given_heads"] * 2
    assert [one["trace"]["kind"] for one in shown["sick_word_by_word"]] == ["softmax"] * 2
    assert ":" not in shown["sick_parent"][0]["trace"]["sources"][0]


def test_attachment_is_counted_without_signs() -> None:
    cat = Parsed(["the", "cat", "ran", "."], [2, 3, 0, 3], [True, True, True, False])
    assert attached([cat], [[2, 3, 0, 1]]) == (100, 100)
    assert attached([cat], [left_chain(4)]) == pytest.approx((0, 200 / 3))
    assert attached([cat], [right_chain(4)]) == pytest.approx((200 / 3, 200 / 3))


def test_every_case_has_its_json(folder: Path) -> None:
    assert folder.exists()
    for case in entailment.CASES[: len(entailment.HEADS)]:
        run = entailment.recipe(case)
        assert from_json(Run, to_json(run)) == run
    assert entailment.sick_soft() == entailment.recipe("sick_soft")
    assert len({to_json(entailment.recipe(case)) for case in entailment.CASES[:5]}) == 5


def test_no_training_pair_of_snli_has_a_text_of_its_test() -> None:
    """The check is needed because corpora that train for SNLI are partly based on the captions of
    SNLI.
    """
    test = {pair.first for pair in entailment.pairs("snli", "test")}
    train = list(entailment.pairs("snli", "train"))
    assert len(train) > 40_000
    assert {pair.label for pair in train} == set(entailment.LABELS)
    assert test.isdisjoint(pair.first for pair in train)
    # MPE has four captions in one text.
    assert not any(one in pair.first for one in sorted(test)[::100] for pair in train[-9000:])


def test_sick_has_its_own_split() -> None:
    sizes = [sum(1 for _ in entailment.pairs("sick", part)) for part in ("train", "dev", "test")]
    assert sizes == [4500, 500, 4927]
    first = next(iter(entailment.pairs("sick", "train")))
    assert first.label == "neutral"
    assert first.first.startswith("a group of kids is playing in a yard and an old man")

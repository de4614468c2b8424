"""Hypotheses from premises and cloze questions, from their data to their tables, with models trained for a few steps."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.lectures import _hypotheses
from benchmarks.lectures.__main__ import EXPERIMENTS, main
from benchmarks.results import Results
from foveal.specs import from_json, to_json
from foveal.training import Run
from recipes import cloze, entailment, hypotheses

pytestmark = pytest.mark.slow


def shorten(experiment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train every run of an experiment for four steps."""
    whole = EXPERIMENTS[experiment]

    def run(case: str) -> Run:
        found = whole.run(case)
        training = replace(found.training, epochs=None, steps=4, batch_size=8)
        return replace(found, training=training)

    monkeypatch.setitem(EXPERIMENTS, experiment, whole._replace(run=run))


def fit_and_score(experiment: str, folder: Path, *cases: str) -> dict[str, float]:
    rest = ["--runs", str(folder / "runs"), "--cases", *cases, "--seeds", "1"]
    main(["fit", experiment, *rest])
    main(["score", experiment, *rest, "--results", str(folder / "results")])
    rows = Results.load(folder / f"results/{experiment}.json").rows
    return {row.name: row.value for row in rows}


def test_cloze_questions_are_fitted_and_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloze, "FOLDER", tmp_path / "cache")
    monkeypatch.setattr(cloze, "SIZES", {"train": 40, "dev": 8, "test": 20})
    shorten("cloze", monkeypatch)
    rows = fit_and_score("cloze", tmp_path, *cloze.CASES)
    gain = rows["attention: accuracy"] - rows["none: accuracy"]
    assert rows["attention - none: difference"] == pytest.approx(gain)
    assert 0 <= rows["attention: on the answer"] <= 100
    assert "none: on the answer" not in rows
    shown = json.loads((tmp_path / "results/shown/cloze.json").read_text(encoding="utf-8"))
    (first, _) = shown["attention"]
    assert len(first["trace"]["weights"]) == 1
    assert first["trace"]["sources"][-1] == "."


def test_a_cloze_question_has_one_answer() -> None:
    """Of the four events, one has the object of the question and a verb that means the same."""
    generator, meanings = random.Random(0), {verb: one[0] for one in cloze.VERBS for verb in one}
    for _ in range(50):
        document, question, answer = cloze.generate(generator)
        _, verb, *thing = question.split()
        events = [event.split() for event in document.split(" .")[:-1]]
        asked = [event for event in events if event[1:] == [meanings[verb], *thing]]
        assert [event[0] for event in asked] == [answer]
        assert verb not in document
        assert len({event[0] for event in events}) == len(events) == 4


def test_hypotheses_are_written_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypotheses, "FOLDER", tmp_path / "cache")
    monkeypatch.setattr(_hypotheses, "JUDGED", 3)
    words = ("a", "cat", "dog", "man", "runs", "sleeps", "eats")
    generator = random.Random(0)
    for name in ("train", "dev", "test"):
        texts = [" ".join(generator.choices(words, k=4)) for _ in range(24)]
        found = [
            entailment.Pair(text, text[:5], entailment.LABELS[number % 3])
            for number, text in enumerate(texts)
        ]
        entailed = [pair for pair in found if pair.label == hypotheses.ENTAILED]
        entailment.write(tmp_path / f"cache/hypotheses_{name}_labeled.tsv", found)
        entailment.write(tmp_path / f"cache/hypotheses_{name}.tsv", entailed)
    shorten("hypotheses", monkeypatch)
    rows = fit_and_score("hypotheses", tmp_path, "judge", "every_step", "attention")
    assert rows["judge: accuracy on SNLI"] + rows["judge: error rate on SNLI"] == 100
    for case in ("every_step", "attention"):
        assert rows[f"{case}: perplexity"] > 1
        assert 0 <= rows[f"{case}: judged entailed by the next premise"] <= 100
        assert 100 / 3 <= rows[f"{case}: different"] + 0.01 <= 100.01
    shown = json.loads((tmp_path / "results/shown/hypotheses.json").read_text(encoding="utf-8"))
    assert len(shown["attention"]) == 3


def test_every_case_has_its_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypotheses, "part", lambda *_, **__: cloze.tsv(tmp_path / "none.tsv"))
    texts = [to_json(hypotheses.recipe(case)) for case in hypotheses.CASES]
    assert len(set(texts)) == len(texts)
    assert from_json(Run, texts[0]) == hypotheses.judge()

"""Translation with four kinds of attention, from files to tables, with models trained for a few steps; and
the boundary and length scores on cases worked out by hand.
"""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from benchmarks.lectures import _segmentation
from benchmarks.lectures.__main__ import EXPERIMENTS, main
from benchmarks.lectures._by_length import Written, length_rows
from benchmarks.results import Results, Row
from foveal.attention import AttentionTrace
from foveal.metrics import bleu, exact_match
from foveal.specs import from_json, to_json
from foveal.tasks import TransductionSpec
from foveal.training import Run
from recipes import ja_en, scan, segment_translation

pytestmark = pytest.mark.slow

WORDS = {"猫": "cat", "人生": "life", "が": "is", "つら": "hard", "い": "so", "カメラ": "camera"}
SIZES = {"train": 60, "dev": 6, "test": 12}


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with short sentences where the recipe looks for them."""
    monkeypatch.setattr(ja_en, "DATA", tmp_path / "data")
    (tmp_path / "data/enja_tanaka50k").mkdir(parents=True)
    chance = Random(1)
    for name, size in SIZES.items():
        drawn = [chance.choices(list(WORDS), k=chance.randint(3, 6)) for _ in range(size)]
        japanese, english = ja_en.files(name)
        _write(japanese, [" ".join(words) for words in drawn])
        _write(english, [" ".join(WORDS[word] for word in words) for words in drawn])
    return tmp_path


def _write(path: Path, lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def short(run: Run) -> Run:
    """Train a small model for a few steps."""
    task = run.task
    assert isinstance(task, TransductionSpec)
    return replace(
        run,
        task=replace(task, min_count=1, prediction=replace(task.prediction, beam_size=2)),
        training=replace(run.training, epochs=None, steps=6, batch_tokens=200, bf16=False),
    )


def scored(name: str, cases: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fit and score with the commands; return the folder of the results."""
    experiment = EXPERIMENTS[name]
    fake = experiment._replace(run=lambda case: short(experiment.run(case)))
    monkeypatch.setitem(EXPERIMENTS, name, fake)
    rest = ["--runs", str(folder / "runs"), "--seeds", "1", "2"]
    main(["fit", name, *rest, "--cases", *cases])
    main(
        ["score", name, *rest, "--results", str(folder / "results")]
    )  # cases without runs are left out
    return folder / "results"


def rows_of(path: Path) -> dict[str, Row]:
    return {row.name: row for row in Results.load(path).rows}


def test_translation_is_fitted_and_scored(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_translation, "SIZE", 16)
    monkeypatch.setattr("benchmarks.lectures._translation.LONG", range(3, 20))
    cases = ["characters_none", "characters_simple", "characters_segment", "words_simple"]
    results = scored("segment_translation", cases, corpus, monkeypatch)
    words, rows = (
        rows_of(results / f"translation_{source}.json") for source in ("words", "characters")
    )
    assert "simple: BLEU" in words
    assert "segment: BLEU" not in words
    assert all(0 <= rows[f"{name}: right"].value <= 100 for name in ("none", "segment"))
    gap = rows["segment - simple: difference"]
    assert gap.target == 0.0
    assert rows["segment - simple: Kim et al. 2017"].value == 2.0
    assert gap.spread is not None
    assert gap.spread[0] <= gap.value <= gap.spread[1]
    more = rows["segment: parameters"].value
    assert more - rows["simple: parameters"].value == 4  # the transition scores
    assert "segment - simple: difference" not in words

    lengths = rows_of(results / "translation_characters_by_length.json")
    for name in ("none", "segment"):
        whole = lengths[f"all: {name}, right"].value
        assert whole == pytest.approx(rows[f"{name}: right"].value)
    assert "all: simple - none, BLEU" in lengths

    learning = rows_of(results / "translation_characters_learning.json")
    assert len(learning) == 8 * 3
    assert learning["8/8 of the updates: simple"].unit == "BLEU"

    found = rows_of(results / "segments_found.json")
    assert found["every place: recall"].value == 100
    assert found["every place: ranked"].value == 50
    titles = [f"{name}, {rule}" for name in ("simple", "segment") for rule in ("chosen", "unlike")]
    assert all(0 <= found[f"{title}: ranked"].value <= 100 for title in titles)

    shown = json.loads((results / "shown/segment_translation.json").read_text(encoding="utf-8"))
    pictures = shown["characters_segment"]
    assert pictures
    for read, words in zip(pictures[::2], pictures[1::2], strict=True):
        assert read["trace"]["sources"] == words["trace"]["sources"]
        selected = [
            "".join(np.array(words["trace"]["sources"])[row]) for row in words["trace"]["best"]
        ]
        assert selected == words["trace"]["targets"]


def test_commands_are_scored_by_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "DATA", tmp_path / "data")
    (tmp_path / "data/scan").mkdir(parents=True)
    for name, longest in (("train", 3), ("test", 6)):
        lines = [
            f"IN: {verb} {number} OUT: {' '.join([f'I_{verb.upper()}'] * number)}"
            for verb in ("walk", "run", "look")
            for number in range(1, longest)
        ]
        _write(tmp_path / f"data/scan/tasks_{name}_length.txt.gz", lines)
    cases = ["length_none", "length"]
    rows = rows_of(
        scored("commands_by_length", cases, tmp_path, monkeypatch) / "commands_by_length.json"
    )
    assert [name for name in rows if name.endswith(": none, right")] == [
        f"{part}: none, right"
        for part in ("1 to 2 actions", "3 actions", "4 actions", "5 actions", "all")
    ]
    assert not any("segment" in name for name in rows)


def test_the_gap_of_attention_is_that_of_each_length() -> None:
    """With attention all outputs are right; without it only the short ones are."""
    references = ["a b c d"] * 5 + ["a b c d e f g h"] * 5
    without = [text if len(text) < 8 else "x" for text in references]
    systems = {
        name: Written(
            bleu=[bleu(references, outputs, tokenize="none")] * 2,
            exact=[exact_match(references, outputs)] * 2,
        )
        for name, outputs in (("none", without), ("simple", references))
    }
    lengths = [len(text.split()) for text in references]
    rows = {row.name: row for row in length_rows(lengths, "words", systems, (1, 2))}
    assert rows["4 words: simple - none, BLEU"].value == 0
    assert rows["8 words: simple - none, BLEU"].value == pytest.approx(100, abs=0.1)
    assert rows["8 words: none, right"].value == 0
    assert rows["all: none, right"].value == 50


def trace(weights: list[list[float]]) -> AttentionTrace:
    """Build a trace with one row per target word and one for the end token; weights above one half
    are selected.
    """
    rows = (*(tuple(map(float, row)) for row in weights), (0.0,) * len(weights[0]))
    return AttentionTrace(
        kind="segment",
        sources=tuple("abcdefgh"[: len(weights[0])]),
        targets=(*(f"word {n}" for n in range(len(weights))), ""),
        weights=rows,
        best=tuple(tuple(weight > 0.5 for weight in row) for row in rows),
    )


def test_segments_that_are_the_words_find_all_boundaries() -> None:
    gold = _segmentation.corpus_boundaries("ab c de")
    read = trace([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]])
    found = _segmentation.chosen_boundaries(read)
    assert set(_segmentation.boundary_scores([gold], [found]).values()) == {100.0}
    unlike = _segmentation.unlike_neighbors(read)
    assert unlike.tolist() == [0, 1, 1, 0]
    assert _segmentation.ranked([gold], [unlike]) == 100
    assert (unlike > _segmentation.threshold_for([unlike], [gold])).tolist() == found.tolist()


def test_segments_beside_the_words_find_some() -> None:
    gold = _segmentation.corpus_boundaries("ab c de")
    read = trace([[0.9, 0.1, 0.1, 0.1, 0.1]])  # the segment of the end token is not counted
    found = _segmentation.chosen_boundaries(read)
    assert found.tolist() == [True, False, False, False]
    assert _segmentation.boundary_scores([gold], [found])["F1"] == 0
    both = _segmentation.boundary_scores([gold], [np.array([True, True, False, False])])
    assert both["precision"] == both["recall"] == 50
    assert both["words F1"] == 0  # a, b, cde
    assert _segmentation.ranked([gold], [_segmentation.unlike_neighbors(read)]) == 25


def test_scripts_change_where_kana_meet_kanji() -> None:
    assert _segmentation.script_changes("猫 が カメラ 。").tolist() == [
        True,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("case", segment_translation.CASES)
def test_every_case_has_its_json(case: str) -> None:
    run = segment_translation.recipe(case)
    assert from_json(Run, to_json(run)) == run
    assert isinstance(run.task, TransductionSpec)
    model = run.task.model
    model = replace(model, decoder=replace(model.decoder, attention=None))
    others = replace(run.task, model=model)
    same = segment_translation.recipe(f"{case.partition('_')[0]}_none")
    assert (others, run.training) == (same.task, same.training)  # only the attention differs

"""The output of the full example runs is parsed into result rows."""

import runpy
from pathlib import Path

import pytest

from benchmarks import examples
from examples.support.speech import file_names
from foveal.errors import DataError

ROOT = Path(examples.ROOT)


def test_every_line_with_a_unit_is_a_score(tmp_path: Path) -> None:
    source = tmp_path / "example.py"
    source.write_text(
        "import sys\nprint('epoch 1: loss 2.5')\nprint('F1:', sys.argv[2], '%')\n"
        "print('perplexity: 4.5 per character')\n"
    )
    found = examples.run(source, seed=7)
    assert found.scores == {("F1", "%"): 7.0, ("perplexity", "per character"): 4.5}
    assert found.wall_clock > 0
    assert found.processor > 0


def test_an_example_without_a_score_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "example.py"
    source.write_text("print('skipped: data not found')\n")
    with pytest.raises(SystemExit, match=r"example\.py gave no score"):
        examples.run(source, seed=0)


def test_results_have_the_mean_over_seeds_and_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(source: Path, seed: int) -> examples.Run:
        assert source == ROOT / "examples/crf_tagger.py"
        scores = {("test chunk F1", "%"): 90.0 + seed}
        return examples.Run(scores=scores, wall_clock=2.0, processor=1.0)

    monkeypatch.setattr(examples, "run", run)
    monkeypatch.setattr(examples, "DATA", tmp_path)
    monkeypatch.setitem(examples.FILES, "crf_tagger", ["train.txt"])
    (tmp_path / "train.txt").write_text("")
    results = examples.measure("crf_tagger", [0, 2])
    score = results.rows[0]
    assert (score.name, score.value, score.spread) == ("test chunk F1", 91.0, (90.0, 92.0))
    assert (score.unit, score.seeds) == ("%", (0, 2))
    assert results.data["train.txt"].startswith("e3b0c44298fc")  # SHA-256 of an empty file
    assert "examples/crf_tagger.py" in results.spec


def test_missing_data_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "DATA", tmp_path)
    monkeypatch.setenv("FOVEAL_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"data not found at .*foveal data get conll2000_chunking"):
        examples.measure("crf_tagger", [0])


def test_the_files_are_those_that_the_examples_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    parser = runpy.run_path(str(ROOT / "examples/dependency_parser.py"))
    tagger = runpy.run_path(str(ROOT / "examples/crf_tagger.py"))
    read = {parser["FILE"].format(part=part) for part in ("train", "test")}
    assert read == set(examples.FILES["dependency_parser"])
    assert all(name.startswith(tagger["FOLDER"]) for name in examples.FILES["crf_tagger"])
    sentiment = runpy.run_path(str(ROOT / "examples/sentiment.py"))
    assert examples.FILES["sentiment"] == [sentiment["ARCHIVE"]]
    speech = runpy.run_path(str(ROOT / "examples/text_to_speech.py"))
    speakers = (speech["VOICE"], *speech["OTHERS"])
    names = [name for each in speakers for name in file_names(each)]
    assert examples.FILES["text_to_speech"] == names
    model = (ROOT / "examples/character_language_model.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in model for name in examples.FILES["character_language_model"])


def test_every_example_that_is_cut_in_the_tests_can_be_run_in_full() -> None:
    names = {path.stem for path in ROOT.glob("examples/*.py")}
    assert set(examples.FILES) == names - {"segment_attention"}


def test_an_example_that_makes_its_own_data_reads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(source: Path, seed: int) -> examples.Run:
        assert source == ROOT / "examples/copy_and_reverse.py"
        scores = {("copy with attention, length 5", "%"): 100.0 - seed}
        return examples.Run(scores=scores, wall_clock=2.0, processor=1.0)

    monkeypatch.setattr(examples, "run", run)
    results = examples.measure("copy_and_reverse", [0, 1, 2])
    assert not results.data
    assert "examples/support/transduction.py" in results.spec
    assert results.rows[0].spread == (98.0, 100.0)

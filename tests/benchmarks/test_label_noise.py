"""The errors in transliteration that a reader judged."""

from pathlib import Path

import pytest

from benchmarks import label_noise
from benchmarks.label_noise import AT_RANDOM, FIGURES, MOST_CONFIDENT, TABLE, VERDICTS
from benchmarks.results import Results, ResultsError
from recipes.katakana import SCRIPTS

RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_every_error_is_judged_and_counted(tmp_path: Path) -> None:
    text = (RESULTS / TABLE).read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    assert len(rows) == len(SCRIPTS) * (MOST_CONFIDENT + AT_RANDOM)
    assert {row[-1] for row in rows} == set(VERDICTS)

    (tmp_path / TABLE).write_text(text, encoding="utf-8")
    stored = Results.load(RESULTS / FIGURES)
    stored.save(tmp_path / FIGURES)
    label_noise.count(tmp_path)
    counted = Results.load(tmp_path / FIGURES)
    assert counted.rows == stored.rows
    by_name = {row.name: row.value for row in counted.rows}
    verdicts = [row[-1] for row in rows if row[0] == "most confident"]
    fraction = 100 * verdicts.count("file") / len(verdicts)
    assert by_name["most confident, all scripts: file"] == pytest.approx(fraction)
    assert sum(by_name[f"random, korean: {each}"] for each in VERDICTS) == pytest.approx(100)


def test_an_unknown_verdict_is_an_error(tmp_path: Path) -> None:
    header = "sample\tscript\tsource\tfile\tmodel\tverdict\n"
    (tmp_path / TABLE).write_text(
        header + "random\tkorean\ttoon\tx\ty\tperhaps\n", encoding="utf-8"
    )
    with pytest.raises(ResultsError, match=r"the verdict on toon must be one of file, both"):
        label_noise.count(tmp_path)

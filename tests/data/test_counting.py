"""Counting the examples of a large corpus: all of a small one, the lines of a large one."""

import gzip
from pathlib import Path

import pytest

from foveal.data import Example, csv, parallel, tsv
from foveal.data._lines import num_lines
from foveal.errors import DataError
from foveal.planning import _counting
from foveal.planning._counting import count_examples
from foveal.training._run import _Counted


def test_lines_are_counted_in_plain_and_compressed_files(tmp_path: Path) -> None:
    for name, text in (("whole", "a\nb\n\nc\n"), ("open", "a\nb\n\nc"), ("empty", "")):
        (tmp_path / name).write_text(text)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        for file in (name, f"{name}.gz"):
            assert num_lines(str(tmp_path / file), most=100) == (4 if text else 0)


def test_a_damaged_file_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress(b"a\n" * 1000)[:-9])
    with pytest.raises(DataError, match=r"words.gz, line \d+: the compressed file is truncated"):
        num_lines(str(path), most=10_000)


def test_the_count_is_exact_below_a_size_and_of_lines_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side in "ab":
        (tmp_path / side).write_text("x\n\ny\n" * 10)
    source = tsv([tmp_path / "a", tmp_path / "b"], target=None)
    assert count_examples(source) == 40
    monkeypatch.setattr(_counting, "_MOST_READ", 40)
    assert count_examples(source) == 60  # empty lines too
    monkeypatch.setattr(_counting, "_MOST_READ", 20)
    assert count_examples(parallel(tmp_path / "a", tmp_path / "b")) == 30  # of the first file
    monkeypatch.setattr(_counting, "_MOST_COUNTED", 45)
    assert count_examples(source) == 45
    assert count_examples([Example("x")] * 50) == 45  # no file


def test_a_format_of_several_lines_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text('"a\nb",x\nc,y\n')
    monkeypatch.setattr(_counting, "_MOST_READ", 1)
    assert count_examples(csv(tmp_path / "a.csv")) == 2
    (tmp_path / "a.tsv").write_text("a\tx\nb\ty\n")
    assert count_examples(tsv(tmp_path / "a.tsv")) == 2


def test_a_run_counts_what_it_reads_anyway() -> None:
    counted = _Counted([Example("a"), Example("b"), Example("c")])
    rows = iter(counted)
    next(rows)
    assert counted.number is None
    assert len(list(counted)) == 3
    assert counted.number == 3

"""The alignment benchmark on a model that is trained for a few steps."""

from pathlib import Path
from random import Random

import pytest

from benchmarks import alignment
from benchmarks.results import Results
from examples.support.known_alignments import draw_digits

pytestmark = pytest.mark.slow


def test_rows_are_written_and_runs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = draw_digits(60, Random(0))
    pairs = alignment.Pairs(drawn[10:], drawn[:10])
    short = alignment.CASES["digits"]._replace(pairs=lambda: pairs, steps=3)
    monkeypatch.setitem(alignment.CASES, "digits", short)
    out, keep = tmp_path / "results.json", tmp_path / "runs"
    words = ["digits", "--kinds", "softmax", "--out", str(out), "--keep", str(keep)]
    alignment.main([*words, "--seeds", "1"])
    rows = {row.name: row for row in Results.load(out).rows}
    assert len(rows) == 6
    for row in rows.values():
        assert row.spread is not None
        assert 0 <= row.value <= 100
        assert row.seeds == (1,)
    weights = keep / "digits-softmax-1/weights.safetensors"
    written = weights.stat().st_mtime_ns
    alignment.main([*words, "--seeds", "1", "2"])
    assert weights.stat().st_mtime_ns == written
    assert Results.load(out).rows[0].seeds == (1, 2)


def test_the_diagonal_links_every_target_word_in_order() -> None:
    for size in [(1, 4), (4, 1), (3, 3), (5, 2), (2, 7)]:
        links = sorted(alignment.diagonal(*size), key=lambda link: link[1])
        assert [j for _, j in links] == list(range(size[1]))
        assert [i for i, _ in links] == sorted(i for i, _ in links)
        assert all(0 <= i < size[0] for i, _ in links)
    assert alignment.diagonal(3, 3) == {(0, 0), (1, 1), (2, 2)}

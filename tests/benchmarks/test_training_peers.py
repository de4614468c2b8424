"""The benchmarks of training against other toolkits and on a large corpus, without real timing."""

import json
import os
import time
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import large_corpus, training_peers
from benchmarks.seq2seq_yoyodyne import ToolkitMissingError, load_toolkit
from benchmarks.training_toolkits import Done, Sizes
from foveal.data import Example

pytestmark = pytest.mark.slow

SIZES = Sizes(embedding=4, hidden=6, dropout=0.1, batch=5)
WORDS = [Example(a + b, f"{a} {b} {b}") for a in "abcd" for b in "abcd"]


def busy() -> Done:
    end = time.process_time() + 0.01
    while time.process_time() < end:
        pass
    return Done(examples=3, symbols=7)


def test_rates_are_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_peers, "SECONDS", 0.05)
    cases: tuple[tuple[training_peers.Unit, float], ...] = (("examples", 300.0), ("symbols", 700.0))
    for unit, each in cases:
        found = training_peers.rates({"peer": busy, "ours": busy}, unit, rounds=2)
        assert all(0.5 * each < rate <= 1.05 * each for speeds in found.values() for rate in speeds)
        assert len(found["ours"]) == 2


def test_a_ratio_is_taken_within_a_round_and_only_ours_has_a_target() -> None:
    found = {"peer": [1.0, 2.0, 4.0], "ours": [8.0, 14.0, 24.0], "ours, bf16": [9.0, 18.0, 36.0]}
    rows = list(training_peers.rows("words", "peer", found, "examples", 6.0))
    assert [(row.name, row.value, row.target) for row in rows[:2]] == [
        ("words: ours to peer", 7.0, 6.0),
        ("words: ours, bf16 to peer", 9.0, None),
    ]
    assert rows[0].spread == (6.0, 8.0)
    assert [row.unit for row in rows[2:]] == ["examples/s"] * 3


@pytest.mark.parametrize("bf16", [False, True])
def test_a_step_of_ours_trains_on_a_whole_batch(bf16: bool, tmp_path: Path) -> None:
    spec = training_peers.model_of(SIZES)
    with training_peers.ours(spec, WORDS, 5, tmp_path, bf16=bf16) as step:
        done = [step() for _ in range(11)]
    assert {one.examples for one in done} <= {3, 4, 5}
    assert all(one.symbols == 4 * one.examples for one in done)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert sum(line["event"] == "step_done" for line in lines) == 10


def test_a_toolkit_that_is_not_there_is_named() -> None:
    with pytest.raises(ToolkitMissingError, match=r"needs no_such_toolkit .* --group toolkits"):
        load_toolkit("no_such_toolkit")


def test_made_up_words_are_words() -> None:
    lines = list(large_corpus.made_up(50, seed=1))
    assert lines == list(islice(large_corpus.made_up(99, seed=1), 50))
    for line in lines:
        letters, phones = line.rstrip("\n").split("\t")
        assert 3 <= len(letters) == len(phones.split()) <= 16


def test_a_fit_can_be_stopped_and_let_go_on(tmp_path: Path) -> None:
    if not Path(f"/proc/{os.getpid()}/stat").exists():
        pytest.skip("there is no /proc here")
    for name in ("train", "dev"):
        text = "".join(large_corpus.made_up(100, seed=2))
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    with large_corpus.Fit(
        str(tmp_path / "train.tsv"), tmp_path / "dev.tsv", tmp_path / "run"
    ) as fit:
        first = fit.wait_for(1)
        fit.pause()
        before, after = fit.run_for(0.2)
        assert first.steps <= before.steps < after.steps
        assert after.processor - before.processor >= 0.2
        assert after.symbols > before.symbols > 0
        assert fit.most_memory() > 50
        time.sleep(0.1)
        stopped = fit.reading()
        time.sleep(0.3)
        assert fit.reading().processor == stopped.processor

"""The benchmark of training and search, with very small models."""

import importlib.util
from pathlib import Path

import pytest
import torch

from benchmarks import seq2seq, seq2seq_memory, seq2seq_search, seq2seq_training
from benchmarks.results import Results
from benchmarks.seq2seq_plain import PlainSeq2Seq
from benchmarks.seq2seq_yoyodyne import ToolkitMissingError, Yoyodyne
from benchmarks.timing import Plan
from foveal.inference import _native

pytestmark = pytest.mark.slow

QUICK = Plan(rounds=2, least_rounds=2, budget=0.01, block=0.0, warm_up=0.0)
TRAINING = seq2seq_training.Sizes(hidden=8, batch=3, source=5, target=4, vocabulary=11)
SEARCH = seq2seq_search.Sizes(hidden=8, embedding=4, vocabulary=12, source=5, target=4)


def test_every_training_step_has_a_loss_near_that_of_chance() -> None:
    expected = torch.tensor(11.0).log()
    for name, step in seq2seq_training.steps(TRAINING).items():
        loss = step()
        assert abs(loss - expected) < 0.5, name
        half = seq2seq_training.in_half_precision(step)()
        assert abs(half - loss) < 0.05, name


def test_training_rows_have_their_targets() -> None:
    rows = list(seq2seq_training.rows(TRAINING, QUICK))
    targets = [row.target for row in rows if row.target is not None]
    assert sorted(targets) == [1.15, 1.25, 1.3, 1.6]
    assert all(row.value > 0 for row in rows)
    assert len({row.name for row in rows}) == len(rows)


def test_structured_attention_is_measured_beside_softmax() -> None:
    rows = list(seq2seq_training.native_rows(TRAINING, QUICK))
    assert [row.target for row in rows] == [1.08, 1.25]
    assert all(row.unit == "x additive attention" and row.value > 0 for row in rows)


def test_search_rows_have_their_targets() -> None:
    rows = list(seq2seq_search.rows(SEARCH, QUICK, batches=(1, 32), with_peer=False))
    assert {row.target for row in rows if row.unit == "x faster"} == {1.5}
    assert sum(row.unit == "words/s" for row in rows) == 16
    assert len({row.name for row in rows}) == len(rows)
    (row,) = seq2seq_search.beam_rows(SEARCH, QUICK, batch=2, vocabularies=(12,))
    assert row.unit == "x greedy"


def test_everyone_writes_as_many_tokens() -> None:
    for width in (1, 3):
        calls = seq2seq_search.candidates(SEARCH, 3, width, with_peer=False)
        for call in calls.values():
            tokens = call()
            assert tokens.shape == (3, SEARCH.target)
            assert not (tokens[:, :-1] == 3).any()  # at the limit, our search forces outputs to end


def test_the_plain_beam_of_one_is_the_plain_greedy_search() -> None:
    torch.manual_seed(1)
    model = PlainSeq2Seq(12, 4, 8).eval()
    tokens, lengths = torch.randint(4, 12, (5, 6)), torch.tensor([6, 3, 5, 1, 2])
    tokens = tokens.masked_fill(torch.arange(6) >= lengths[:, None], 0)
    greedy, beam = model.greedy(tokens, lengths, 7), model.beam(tokens, lengths, 7, 1)
    for one, other in zip(greedy.tolist(), beam.tolist(), strict=True):
        end = one.index(3) if 3 in one else len(one)
        assert one[:end] == other[:end]


def test_the_peer_says_how_to_install_it() -> None:
    sizes = {"vocabulary": 12, "embedding": 4, "hidden": 8, "max_length": 4}
    if importlib.util.find_spec("yoyodyne") is None:
        with pytest.raises(ToolkitMissingError, match=r"--no-deps .*--group toolkits"):
            Yoyodyne(**sizes)
    else:
        found = Yoyodyne(**sizes).search(torch.randint(6, 12, (2, 5)), 1)
        assert found.shape == (2, 4)


def test_the_peak_counts_what_is_held_at_a_time() -> None:
    def call() -> torch.Tensor:
        first = torch.ones(1_000_000)  # 4 MB
        del first
        return torch.ones(500_000) + torch.ones(500_000)  # 6 MB

    assert seq2seq_memory.peak_of(call) == pytest.approx(6e6, rel=0.01)


def test_memory_rows_are_linear_at_any_size() -> None:
    rows = list(seq2seq_memory.rows((16, 20, 10), num_searches=20))
    exponents = [row for row in rows if row.unit == "exponent"]
    assert len(exponents) == 6
    for row in exponents:
        assert not row.misses, row
    assert rows[-1].unit == "MB"


def test_growth_counts_what_is_left_behind() -> None:
    left: list[torch.Tensor] = []
    # Each tensor has 36 MB: a smaller one may reuse memory that an earlier test has freed.
    assert seq2seq_memory.growth(lambda: left.append(torch.ones(9_000_000)), 10) > 300e6


def test_the_command_writes_its_part_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "_IN_USE", False)  # the command changes it
    out = tmp_path / "results.json"
    for part, name in (("beam", "beam_rows"), ("memory", "rows")):
        module = seq2seq_search if part == "beam" else seq2seq_memory
        row = seq2seq.Row(name=part, value=1.0, unit="x")
        monkeypatch.setattr(module, name, lambda *_, row=row: iter([row]))
        seq2seq.main([part, "--rounds", "1", "--out", str(out)])
    assert [row.name for row in Results.load(out).rows] == ["beam", "memory"]
    with pytest.raises(SystemExit):
        seq2seq.main(["nonsense", "--out", str(out)])

"""A stream returns every example once per epoch, within the budget. It can resume at any batch, and
several processes together read the same rows as one process.
"""

import gzip
import json
import random
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st

from foveal.data import (
    BatchStream,
    Encoded,
    Example,
    InMemory,
    Seq2SeqBatch,
    Source,
    babi,
    collate_seq2seq,
    parallel,
    tsv,
)
from foveal.data._example import Where
from foveal.data.streams._pools import STRETCH, LeftOut
from foveal.data.streams._text_stream import TextStream
from foveal.errors import DataError, ValueRangeError

pytestmark = pytest.mark.slow

LENGTHS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


def encode(example: Example) -> Encoded:
    target = example.target or ""
    return Encoded([ord(sign) for sign in str(example.source)], [ord(sign) for sign in target])


def in_memory(lengths: Sequence[tuple[int, int]]) -> InMemory:
    return InMemory(tuple(Example("a" * source, "b" * target) for source, target in lengths))


def stream_of(source: Source, **settings: Any) -> BatchStream[Seq2SeqBatch]:
    return BatchStream(source, encode, collate_seq2seq, **settings)


def indices(stream: BatchStream[Seq2SeqBatch]) -> list[list[int]]:
    return [batch.indices.tolist() for batch in stream]


def chained(batches: Iterable[list[int]]) -> list[int]:
    return [index for batch in batches for index in batch]


def cost(batch: Seq2SeqBatch) -> int:
    return len(batch.indices) * (batch.source.shape[1] + batch.targets.shape[1])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files of 40 lines, each read in several blocks."""
    monkeypatch.setattr("foveal.data._bytes.CHUNK", 64)
    monkeypatch.setattr("foveal.data.streams._pools.BLOCK", 150)
    draw = random.Random(0)
    for name in "abc":
        rows = [f"{name}{'x' * draw.randrange(9)}\t{'y' * draw.randrange(9)}" for _ in range(40)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(rows), encoding="utf-8")
    return tmp_path


SMALL, WHOLE = 500, 1 << 22  # pool sizes: 120 examples are five pools, or one


@given(LENGTHS, st.integers(21, 90), st.integers(1, 300), st.booleans(), st.integers(0, 3))
@settings(deadline=None, max_examples=60)
def test_every_example_once_and_within_the_budget(
    lengths: list[tuple[int, int]], budget: int, pool_size: int, by_length: bool, seed: int
) -> None:
    source = in_memory(lengths)
    stream = stream_of(source, budget=budget, pool_size=pool_size, by_length=by_length, seed=seed)
    for epoch in range(2):
        assert stream.epoch == epoch
        batches = list(stream)
        assert all(cost(batch) <= budget for batch in batches)
        found = [index for batch in batches for index in batch.indices.tolist()]
        assert sorted(found) == list(range(len(lengths)))
        for batch in batches:
            for index, mask in zip(batch.indices.tolist(), batch.source_mask, strict=True):
                assert int(mask.sum()) == lengths[index][0]


@given(LENGTHS, st.integers(1, 9), st.integers(1, 300))
@settings(deadline=None, max_examples=60)
def test_batches_of_so_many_rows(
    lengths: list[tuple[int, int]], batch_size: int, pool_size: int
) -> None:
    batches = indices(stream_of(in_memory(lengths), batch_size=batch_size, pool_size=pool_size))
    assert sorted(chained(batches)) == list(range(len(lengths)))
    assert all(len(batch) <= batch_size for batch in batches)
    whole = indices(stream_of(in_memory(lengths), batch_size=batch_size))
    assert len(whole) == -(-len(lengths) // batch_size)


@given(LENGTHS, st.integers(2, 4), st.integers(21, 90), st.integers(1, 300))
@settings(deadline=None, max_examples=60)
def test_the_rows_of_processes_are_those_of_one(
    lengths: list[tuple[int, int]], world_size: int, budget: int, pool_size: int
) -> None:
    if len(lengths) < world_size:
        lengths = lengths * world_size
    every = [
        indices(
            stream_of(
                in_memory(lengths),
                budget=budget,
                pool_size=pool_size,
                rank=rank,
                world_size=world_size,
            )
        )
        for rank in range(world_size)
    ]
    together = [chained(parts) for parts in zip(*every, strict=True)]
    assert sorted(chained(together)) == list(range(len(lengths)))
    for parts in zip(*every, strict=True):
        sizes = [len(part) for part in parts]
        assert min(sizes) > 0  # no process is idle
        assert max(sizes) - min(sizes) <= 1
    alone = indices(stream_of(in_memory(lengths), budget=budget, pool_size=pool_size))
    if all(len(batch) >= 2 * world_size for batch in alone) and pool_size == 300:
        assert [sorted(batch) for batch in together] == [sorted(batch) for batch in alone]


def test_two_processes_share_the_batches_of_one(files: Path) -> None:
    source = tsv(files / "*.tsv")
    for pool_size in (SMALL, WHOLE):
        one = indices(stream_of(source, budget=120, pool_size=pool_size))
        two = [
            indices(stream_of(source, budget=120, pool_size=pool_size, rank=rank, world_size=2))
            for rank in range(2)
        ]
        assert min(map(len, one)) > 1
        assert [batch[::2] for batch in one] == two[0]
        assert [batch[1::2] for batch in one] == two[1]


@pytest.mark.parametrize("pool_size", [SMALL, WHOLE])
def test_the_stream_goes_on_from_every_batch(files: Path, pool_size: int) -> None:
    source = tsv(files / "*.tsv")
    settings = {"budget": 120, "seed": 3, "pool_size": pool_size}
    stream = stream_of(source, **settings)
    forever = stream.forever()
    states, batches = [json.dumps(stream.state())], []
    for batch in islice(forever, 60):  # more than two epochs
        batches.append(batch.indices.tolist())
        states.append(json.dumps(stream.state()))
    assert stream.epoch >= 2
    for number, state in enumerate(states):
        fresh = stream_of(source, **settings)
        fresh.restore(json.loads(state))
        expected = batches[number : number + 4]
        following = islice(fresh.forever(), len(expected))
        assert [batch.indices.tolist() for batch in following] == expected
    stream.restore(json.loads(states[5]))  # an earlier state can be restored in the same object
    assert next(stream.forever()).indices.tolist() == batches[5]


def test_the_tensors_are_the_same_after_a_restart(files: Path) -> None:
    source = tsv(files / "*.tsv")
    first = stream_of(source, budget=120, pool_size=SMALL)
    list(islice(first.forever(), 9))
    second = stream_of(source, budget=120, pool_size=SMALL)
    second.restore(first.state())
    for one, other in islice(zip(first.forever(), second.forever(), strict=True), 20):
        assert torch.equal(one.source, other.source)
        assert torch.equal(one.targets, other.targets)
        assert torch.equal(one.mask, other.mask)


def test_other_formats_go_on_too(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a.ja", tmp_path / "a.en"
    ours.write_text("".join(f"{'x' * (n % 7)}\n" for n in range(50)), encoding="utf-8")
    theirs.write_text("".join(f"{'y' * (n % 5)}\n" for n in range(50)), encoding="utf-8")
    story = "1 A is here.\n2 Where?\there\t1\n3 B is there.\n4 Where?\tthere\t3\n"
    (tmp_path / "story").write_text(story * 12, encoding="utf-8")
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(b"".join(b"%d\ta\n" % n for n in range(50))))
    for source in (parallel(ours, theirs), babi(tmp_path / "story"), tsv(packed)):
        stream = stream_of(source, batch_size=3, pool_size=300)
        for _ in islice(stream, 4):
            pass
        other = stream_of(source, batch_size=3, pool_size=300)
        other.restore(json.loads(json.dumps(stream.state())))
        assert indices(other) == indices(stream)


def test_seed_and_epoch_make_the_order(files: Path) -> None:
    source = tsv(files / "*.tsv")
    for pool_size in (SMALL, WHOLE):
        stream = stream_of(source, budget=120, pool_size=pool_size)
        first, second = indices(stream), indices(stream)
        assert first != second
        assert first == indices(stream_of(source, budget=120, pool_size=pool_size))
        assert first != indices(stream_of(source, budget=120, pool_size=pool_size, seed=1))


def test_without_shuffling_the_order_is_that_of_the_file(files: Path) -> None:
    source = tsv(files / "*.tsv")
    for pool_size in (SMALL, WHOLE):
        stream = stream_of(
            source, batch_size=7, shuffle=False, by_length=False, pool_size=pool_size
        )
        first = chained(indices(stream))
        assert first == sorted(first)
        assert first == chained(indices(stream))


def test_blocks_of_large_files_are_mixed(files: Path) -> None:
    """The first pool of an epoch has lines from several files although files are read one after the
    other, because the order of blocks is random.
    """
    stream = stream_of(tsv(files / "*.tsv"), batch_size=4, pool_size=1000)
    first = [stream.where(index).file for batch in islice(indices(stream), 10) for index in batch]
    assert len(set(first)) == 3


def test_an_index_names_its_line(files: Path) -> None:
    for pool_size in (SMALL, WHOLE):
        stream = stream_of(tsv(files / "*.tsv"), batch_size=4, pool_size=pool_size)
        batch = next(iter(stream))
        for index, ids, mask in zip(batch.indices, batch.source, batch.source_mask, strict=True):
            where = stream.where(int(index))
            line = Path(where.file).read_text(encoding="utf-8").splitlines()[where.line - 1]
            assert line.split("\t")[0] == "".join(map(chr, ids[mask].tolist()))


def test_what_is_known_about_an_epoch(files: Path) -> None:
    whole = stream_of(tsv(files / "*.tsv"), batch_size=4)
    assert (whole.num_examples, whole.num_batches) == (None, None)
    next(iter(whole))
    assert (whole.num_examples, whole.num_batches) == (120, 30)
    large = stream_of(tsv(files / "*.tsv"), batch_size=4, pool_size=SMALL)
    next(iter(large))
    assert (large.num_examples, large.num_batches) == (None, None)


def test_a_corpus_in_one_pool_is_read_once(files: Path) -> None:
    stream = stream_of(tsv(files / "*.tsv"), batch_size=4)
    list(stream)
    for file in files.iterdir():
        file.unlink()
    assert len(indices(stream)) == 30


def test_the_next_pool_is_read_little_by_little() -> None:
    read: list[Example] = []

    def counting(example: Example) -> Encoded:
        read.append(example)
        return encode(example)

    source = in_memory([(number % 7, 3) for number in range(4000)])
    stream = BatchStream(source, counting, collate_seq2seq, batch_size=32, pool_size=16_000)
    before, most = 0, []
    for _ in stream:
        most.append(len(read) - before)
        before = len(read)
    assert len(read) == 4000
    assert most[0] > 900  # the first pool is read completely before the first batch
    assert max(most[1:]) <= 32 + STRETCH  # a batch, and a little more


def test_rest_of_an_epoch_after_a_break(files: Path) -> None:
    for pool_size in (SMALL, WHOLE):
        stream = stream_of(tsv(files / "*.tsv"), batch_size=4, pool_size=pool_size)
        expected = indices(stream_of(tsv(files / "*.tsv"), batch_size=4, pool_size=pool_size))
        found = [batch.indices.tolist() for batch in islice(stream, 11)]
        assert found + indices(stream) == expected


def test_what_is_too_long_is_left_out_and_counted() -> None:
    source = in_memory([(3, 3), (50, 3), (2, 2), (3, 70)])
    stream = stream_of(source, budget=20)
    assert sorted(chained(indices(stream))) == [0, 2]
    assert stream.left_out == LeftOut(2, None)
    unwanted = BatchStream(
        source,
        lambda example: encode(example) if len(example.text) < 9 else None,
        collate_seq2seq,
        batch_size=8,
    )
    assert sorted(chained(indices(unwanted))) == [0, 2, 3]
    assert unwanted.left_out.num == 1


def test_a_stream_without_examples(tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").touch()
    with pytest.raises(DataError, match=r"empty.tsv, line 1: expected at least one example"):
        next(iter(stream_of(tsv(tmp_path / "empty.tsv"), batch_size=2)))
    (tmp_path / "long.tsv").write_text("a long one\tx\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"long.tsv: all 1 examples were skipped, the first at"):
        next(iter(stream_of(tsv(tmp_path / "long.tsv"), budget=5)))


def test_an_error_of_encode_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "some.tsv").write_text("a\tx\nb\ty\n", encoding="utf-8")

    def refuse(example: Example) -> Encoded:
        if example.target == "y":
            raise DataError("the label 'y' is none of those seen in training. Correct it.")
        return encode(example)

    with pytest.raises(DataError, match=r"some.tsv, line 2: the label 'y' is none.*\. Correct it"):
        next(iter(BatchStream(tsv(tmp_path / "some.tsv"), refuse, collate_seq2seq, batch_size=2)))


def test_a_state_of_another_stream_is_refused(files: Path) -> None:
    source = tsv(files / "*.tsv")
    state = stream_of(source, batch_size=4).state()
    with pytest.raises(DataError, match="the state lacks batch, corpus"):
        stream_of(source, batch_size=4).restore({"epoch": 1, "pool": 0})
    with pytest.raises(DataError, match="the settings of the stream changed"):
        stream_of(source, batch_size=5).restore(state)
    (files / "d.tsv").write_text("more\tlines\n", encoding="utf-8")
    with pytest.raises(DataError, match="the corpus of the stream changed"):
        stream_of(source, batch_size=4).restore(state)


def test_settings_that_make_no_sense() -> None:
    source = in_memory([(1, 1)])
    with pytest.raises(ValueRangeError, match="either budget or batch_size"):
        stream_of(source)
    with pytest.raises(ValueRangeError, match="either budget or batch_size"):
        stream_of(source, budget=10, batch_size=2)
    with pytest.raises(ValueRangeError, match="budget and batch_size must be at least 1"):
        stream_of(source, batch_size=0)
    with pytest.raises(ValueRangeError, match="rank must be from 0 to world_size - 1, got rank=2"):
        stream_of(source, batch_size=2, rank=2, world_size=2)
    with pytest.raises(DataError, match="1 examples for 2 processes"):
        next(iter(stream_of(source, batch_size=2, world_size=2)))


def letters(example: Example) -> Encoded:
    return Encoded([*map(ord, example.text), 3])


@given(
    st.lists(st.text("abcdefgh", max_size=9), min_size=1, max_size=20),
    st.integers(1, 5),
    st.integers(1, 7),
    st.integers(1, 120),
)
@settings(deadline=None)
def test_a_text_is_read_once_and_in_order(
    lines: list[str], batch_size: int, length: int, pool_size: int
) -> None:
    source = InMemory(tuple(map(Example, lines)))
    stream = TextStream(
        source, letters, batch_size=batch_size, length=length, pool_size=pool_size, shuffle=False
    )
    texts: list[list[int]] = []  # one text for each row of each pool
    for batch in stream:
        assert batch.tokens.shape == batch.targets.shape == batch.mask.shape
        assert batch.tokens.shape[0] == batch_size
        assert batch.tokens.shape[1] <= length
        if batch.fresh:
            texts += [[] for _ in range(batch_size)]
        for row in range(batch_size):
            real = batch.mask[row]
            read, said = batch.tokens[row, real].tolist(), batch.targets[row, real].tolist()
            own = texts[len(texts) - batch_size + row]
            assert read[1:] == said[:-1]
            if own and read:
                assert read[0] == own[-1]  # continues at the last token
            elif row == 0 and read:
                assert read[0] == 3
            own += said
    whole = [number for text in texts for number in text]
    assert whole == [number for line in lines for number in (*map(ord, line), 3)]


def test_a_text_goes_on_from_every_batch(files: Path) -> None:
    for pool_size in (400, WHOLE):
        settings: dict[str, Any] = {"batch_size": 3, "length": 5, "pool_size": pool_size}
        stream = TextStream(tsv(files / "*.tsv"), letters, **settings)
        states, batches = [stream.state()], []
        for batch in islice(stream.forever(), 90):
            batches.append(batch)
            states.append(json.loads(json.dumps(stream.state())))
        assert stream.epoch >= 1
        for number in range(0, 80, 3):
            fresh = TextStream(tsv(files / "*.tsv"), letters, **settings)
            fresh.restore(states[number])
            for batch, expected in zip(fresh.forever(), batches[number : number + 5], strict=False):
                assert torch.equal(batch.tokens, expected.tokens)
                assert torch.equal(batch.targets, expected.targets)
                assert batch.fresh == expected.fresh


def test_rows_of_a_text_are_shared_by_processes(files: Path) -> None:
    settings: dict[str, Any] = {"batch_size": 5, "length": 6}
    whole = list(TextStream(tsv(files / "*.tsv"), letters, **settings))
    for rank in range(2):
        part = TextStream(tsv(files / "*.tsv"), letters, rank=rank, world_size=2, **settings)
        for batch, expected in zip(part, whole, strict=True):
            assert torch.equal(batch.targets, expected.targets[rank::2])
            assert torch.equal(batch.tokens, expected.tokens[rank::2])
    with pytest.raises(ValueRangeError, match="batch_size must be at least world_size=8"):
        TextStream(tsv(files / "*.tsv"), letters, world_size=8, **settings)


def test_where_an_example_in_memory_is() -> None:
    stream = stream_of(in_memory([(1, 1)] * 3), batch_size=3, shuffle=False, by_length=False)
    (batch,) = stream
    assert [stream.where(int(index)) for index in batch.indices] == [
        Where("memory", number) for number in range(3)
    ]

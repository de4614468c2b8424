"""Encoded examples in arrays, and the tensors made from them, against plain loops."""

from typing import TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from foveal.data import BEGIN, END, Encoded, Example, collate_labelled, collate_seq2seq
from foveal.data._batches import collate_questions, collate_tagged, move
from foveal.data._example import Where, read_alignment
from foveal.data.streams._packed import Packed
from foveal.errors import DataError, ShapeError
from foveal.masking import mask_from_lengths

pytestmark = pytest.mark.slow

IDS = st.lists(st.integers(4, 2**31 - 1), max_size=6)
DRAWN = st.lists(st.tuples(IDS, IDS, IDS, st.integers(0, 2**62)), max_size=6)
Drawn: TypeAlias = list[tuple[list[int], list[int], list[int], int]]


def made(drawn: Drawn) -> list[Encoded]:
    return [Encoded(a, b, features=c, index=index) for a, b, c, index in drawn]


def rows(tensor: Tensor, mask: Tensor) -> list[list[int]]:
    """Return the real tokens of each row; they must come first, and zeros must follow."""
    found: list[list[int]] = []
    for row, real in zip(tensor, mask, strict=True):
        size = int(real.sum())
        assert real[:size].all()
        assert not row[size:].any()
        found.append(row[:size].tolist())
    return found


@given(DRAWN)
@settings(deadline=None)
def test_packing_loses_nothing(drawn: Drawn) -> None:
    examples = made(drawn)
    packed = Packed.pack(examples)
    assert list(packed) == examples
    assert len(packed) == len(examples)
    assert list(packed[1:]) == examples[1:]
    if examples:
        assert packed[-1] == examples[-1]
        chosen = np.array([len(examples) - 1, 0, 0])
        assert list(packed.take(chosen)) == [examples[row] for row in chosen]
    joined = packed.source.joined().tolist()
    assert joined == [number for example in examples for number in example.source]
    with pytest.raises(IndexError):
        packed[len(examples)]


@given(DRAWN.filter(bool))
@settings(deadline=None)
def test_pairs(drawn: Drawn) -> None:
    examples = made(drawn)
    batch = collate_seq2seq(examples)
    assert rows(batch.source, batch.source_mask) == [list(e.source) for e in examples]
    assert rows(batch.tokens, batch.mask) == [[BEGIN, *e.target] for e in examples]
    assert rows(batch.targets, batch.mask) == [[*e.target, END] for e in examples]
    assert batch.indices.tolist() == [e.index for e in examples]
    assert batch.source.shape[1] == max(len(e.source) for e in examples)
    assert batch.targets.shape[1] == max(len(e.target) for e in examples) + 1
    if any(e["features"] for e in examples):
        assert batch.features is not None
        assert batch.features_mask is not None
        assert rows(batch.features, batch.features_mask) == [list(e["features"]) for e in examples]
    else:
        assert batch.features is None
        assert batch.features_mask is None
    assert batch.alignment is None


@given(DRAWN.filter(bool))
@settings(deadline=None)
def test_labels_and_tags(drawn: Drawn) -> None:
    examples = made(drawn)
    labeled = collate_labelled([Encoded(e.source, [e.index % 9]) for e in examples])
    assert rows(labeled.tokens, labeled.mask) == [list(e.source) for e in examples]
    assert labeled.labels.tolist() == [e.index % 9 for e in examples]
    tagged = collate_tagged([Encoded(e.source, e.source) for e in examples])
    assert rows(tagged.tags, tagged.mask) == [list(e.source) for e in examples]
    assert torch.equal(tagged.tags, tagged.tokens)


def test_targets_of_the_wrong_number() -> None:
    with pytest.raises(ShapeError, match=r"one label, got 2 labels for example 7"):
        collate_labelled([Encoded([4], [0], index=6), Encoded([4], [0, 1], index=7)])
    with pytest.raises(ShapeError, match=r"got 1 tags for 2 tokens in example 3"):
        collate_tagged([Encoded([4, 5], [0], index=3)])


def test_an_alignment_is_a_table() -> None:
    examples = [Encoded([4, 5], [6, 7, 8], alignment=[0, 2, 1, 0]), Encoded([4, 5, 6], [6])]
    batch = collate_seq2seq(examples)
    assert batch.alignment is not None
    assert batch.alignment.shape == (2, 4, 3)
    assert batch.alignment.nonzero().tolist() == [[0, 0, 1], [0, 2, 0]]
    with pytest.raises(ShapeError, match=r"within 2 source and 1 target tokens, got 1 and 1"):
        collate_seq2seq([Encoded([4, 5], [6], alignment=[1, 1]), *examples])
    assert read_alignment(Example("a b", "c", alignment="0-0 1-0")) == [0, 0, 1, 0]
    for wrong in ("0", "0-", "a-1", "0-0 1:1", "0--1"):
        with pytest.raises(DataError, match=r"^f, line 3: an alignment must consist of pairs"):
            read_alignment(Example("a", "b", alignment=wrong, where=Where("f", 3)))


def test_a_batch_moves() -> None:
    batch = move(collate_seq2seq([Encoded([4], [5])]), "meta")
    assert batch.source.device.type == "meta"
    assert batch.features is None


def test_questions_are_cut_into_facts() -> None:
    """Two facts and a question, and one fact and a longer question."""
    batch = collate_questions(
        [
            Encoded([7, 8, END, 9, END], question=[5, 6], target=[1]),
            Encoded([4, 5, END], question=[6, 7, 8], target=[0]),
        ]
    )
    assert batch.facts.tolist() == [[[7, 8, 0], [9, 0, 0]], [[4, 5, 0], [0, 0, 0]]]
    lengths = batch.facts_mask.sum(-1)
    assert lengths.tolist() == [[2, 1], [2, 0]]
    assert (batch.facts_mask == mask_from_lengths(lengths, 3)).all()
    assert batch.question.tolist() == [[5, 6, 0], [6, 7, 8]]
    assert batch.mask.sum(-1).tolist() == [2, 3]
    assert batch.answers.tolist() == [1, 0]

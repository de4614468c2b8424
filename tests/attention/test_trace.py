"""Traces hold the attention weights as plain data, together with the most probable selection."""

import json

import pytest
import torch
from torch.nn.functional import one_hot

from foveal.attention import (
    AttentionTrace,
    HierarchicalAttention,
    Layout,
    Memory,
    k_step_attention,
    segment_attention,
    sentences_memory,
    sentences_trace,
    softmax_attention,
    syntactic_attention,
    trace_of,
)
from foveal.errors import ShapeError


def test_best_goes_to_json_and_back() -> None:
    trace = AttentionTrace(
        kind="segment",
        sources=("a", "b"),
        targets=("x",),
        weights=((0.9, 0.2),),
        best=((True, False),),
    )
    assert AttentionTrace.from_json(trace.to_json()) == trace
    older = json.loads(trace.to_json())
    del older["best"]
    assert AttentionTrace.from_json(json.dumps(older)).best is None


def test_best_has_the_shape_of_the_weights() -> None:
    for best in (((True,),), (), ((True, False), (True, False))):
        with pytest.raises(
            ShapeError, match="best must have the shape of the weights, 1 rows of 2"
        ):
            AttentionTrace(
                kind="x", sources=("a", "b"), targets=("x",), weights=((0.9, 0.2),), best=best
            )


def test_segments_steps_and_trees_as_the_docstring_says() -> None:
    torch.manual_seed(0)
    values, words = torch.randn(5, 4), list("abcde")
    mask = torch.tensor([True] * 4 + [False])

    segment = segment_attention(4, 4)
    read = segment(torch.randn(2, 4), segment.remember(Memory(values, mask)))
    best = read.distribution.argmax() == 1
    trace = trace_of(read, kind="segment", sources=words[:4], targets=["x", "y"], best=best)
    assert trace.best == tuple(map(tuple, best[:, :4].tolist()))

    steps = k_step_attention(4, 4)
    read = steps(torch.randn(3, 4), steps.remember(Memory(values)))
    best = one_hot(read.distribution.argmax(), 5).bool()
    trace = trace_of(read, kind="k-step", sources=words, targets=["1", "2", "3"], best=best)
    assert trace.best is not None
    assert [sum(row) for row in trace.best] == [1, 1, 1]

    tree = syntactic_attention(4, 4, 8)
    read = tree(values, tree.remember(Memory(values)))
    heads = read.distribution.argmax()
    best = one_hot(heads, 6)[:, 1:].bool()
    trace = trace_of(read, kind="syntactic", sources=words, targets=words, best=best)
    assert trace.best is not None
    drawn = [row.index(True) + 1 if any(row) else 0 for row in trace.best]
    assert drawn == heads.tolist()


def test_sentences_keep_their_words_and_their_layout() -> None:
    torch.manual_seed(0)
    layer = HierarchicalAttention(softmax_attention(4, 6), softmax_attention(4, 6))
    document = [["so", "good"], ["it", "is", "it"]]
    mask = torch.tensor([[True, True, False, False], [True, True, True, False]])
    read = layer(torch.randn(2, 4), layer.remember(sentences_memory(torch.randn(2, 4, 6), mask)))
    trace = sentences_trace(read, kind="two-level", sentences=document, targets=["x", "y"])
    assert trace.sources == ("so", "good", "", "it", "is", "it")
    assert trace.layout == Layout("sentences", 2, 3)
    assert AttentionTrace.from_json(trace.to_json()) == trace
    for row, weights in zip(trace.weights, read.weights.view(2, 2, 4).tolist(), strict=True):
        assert list(row) == weights[0][:3] + weights[1][:3]
        assert sum(row) == pytest.approx(1)

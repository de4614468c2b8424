"""Dependency arcs."""

import pytest
import torch
from torch.nn.functional import one_hot

from foveal.attention import AttentionTrace, Memory, syntactic_attention, trace_of
from foveal.errors import ShapeError, ValueRangeError
from foveal.views import arcs
from tests.inspection.drawings import (
    ARABIC,
    ENGLISH,
    SVG,
    elements,
    parsed,
    titles,
    trace,
    tree_trace,
    value,
)


def _real() -> AttentionTrace:
    torch.manual_seed(4)
    layer = syntactic_attention(4, 4, 8)
    words = 6 * torch.randn(7, 4)
    read = layer(words, layer.remember(Memory(words)))
    heads = read.distribution.argmax()
    best = one_hot(heads, 8)[:, 1:].bool()
    return trace_of(read, kind="syntactic", sources=list(ENGLISH), targets=list(ENGLISH), best=best)


def test_every_arc_that_can_be_seen_has_its_probability() -> None:
    sentence = _real()
    read = dict[str, float]()
    for text in titles(arcs(sentence)):
        if " head" in text:
            read[text.rpartition(": ")[0]] = value(text)
    for word, row in zip(sentence.targets, sentence.weights, strict=True):
        rest = 1 - sum(row)
        assert read.pop(f"{word} heads the sentence", 0.0) == pytest.approx(rest, abs=0.01)
        for head, weight in zip(sentence.sources, row, strict=True):
            assert read.pop(f"{head} heads {word}", 0.0) == pytest.approx(weight, abs=0.01)
    assert not read


def test_the_best_tree_is_on_top_with_an_arrow_for_each_word() -> None:
    sentence = _real()
    drawing = arcs(sentence)
    assert sentence.best is not None
    assert [sum(row) for row in sentence.best].count(0) == 1  # one word is the root
    arrows, lines = elements(drawing, "path", "mark"), elements(drawing, "path", "best")
    assert len(arrows) == len(lines) == len(ENGLISH)
    groups = list(parsed(drawing).iter(f"{SVG}g"))
    marked = [any("mark" in path.get("class", "") for path in group) for group in groups]
    assert marked == sorted(marked)  # drawn last
    assert not elements(arcs(trace(ENGLISH, ENGLISH)), "path", "mark")


def test_more_probable_arcs_have_more_ink() -> None:
    drawing = arcs(trace(ENGLISH, ENGLISH))
    lines = elements(drawing, "path", "stroke")
    inks = [
        (float(line.get("stroke-opacity", 0)), float(line.get("stroke-width", 0))) for line in lines
    ]
    assert inks == sorted(inks)  # and the faint ones lie below
    assert len(set(inks)) > 3


def test_arabic_runs_from_the_right() -> None:
    def places(words: tuple[str, ...]) -> list[float]:
        labels = elements(arcs(tree_trace(words)), "text", "word")
        return [float(label.get("x", 0)) for label in labels]

    assert places(ENGLISH) == sorted(places(ENGLISH))
    assert places(ARABIC) == sorted(places(ARABIC), reverse=True)


def test_a_long_sentence_stays_low_and_small() -> None:
    drawing = arcs(trace([f"word{i}" for i in range(60)], [f"word{i}" for i in range(60)]))
    assert float(parsed(drawing).get("height", 0)) < 420
    assert len(drawing.encode()) < 700_000


def test_rows_that_are_no_heads_are_an_error() -> None:
    words = ("a", "b")
    children = AttentionTrace(
        kind="syntactic", sources=words, targets=words, weights=((0.0, 1.0), (0.9, 0.4))
    )
    with pytest.raises(ValueRangeError, match=r"heads of 'b'.*1\.3.*transpose"):
        arcs(children)
    with pytest.raises(ShapeError, match="one row for each word, got 1 rows and 2 words"):
        arcs(trace("ab", "c"))

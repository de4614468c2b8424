"""Words in sentences."""

import pytest
import torch

from foveal.attention import (
    HierarchicalAttention,
    Layout,
    sentences_memory,
    sentences_trace,
    softmax_attention,
)
from foveal.errors import ShapeError
from foveal.views import sentences
from tests.inspection.drawings import ARABIC, elements, titles, trace

DOCUMENT = [["the", "food", "was", "bad"], ["the", "service", "delicious"], ["ha"]]


def _real() -> tuple[list[list[float]], str]:
    torch.manual_seed(0)
    layer = HierarchicalAttention(softmax_attention(4, 6), softmax_attention(4, 6))
    mask = torch.tensor([[place < len(words) for place in range(4)] for words in DOCUMENT])
    memory = layer.remember(sentences_memory(3 * torch.randn(3, 4, 6), mask))
    read = layer(torch.randn(1, 4), memory)
    one = sentences_trace(read, kind="hierarchical", sentences=DOCUMENT, targets=["positive"])
    return read.weights[0].view(3, 4).tolist(), sentences(one)


def test_every_word_has_its_weight_and_every_sentence_its_sum() -> None:
    weights, drawing = _real()
    said = titles(drawing)
    for index, (words, row) in enumerate(zip(DOCUMENT, weights, strict=True)):
        (bar,) = [text for text in said if text.startswith(f"sentence {index + 1}: ")]
        assert float(bar.partition(": ")[2]) == pytest.approx(sum(row), abs=5e-4)
        for word, weight in zip(words, row, strict=False):
            numbers = [
                text.removeprefix(f"{word}: ") for text in said if text.startswith(f"{word}: ")
            ]
            in_all = [float(text.partition(",")[0].lstrip("<")) for text in numbers]
            assert any(number == pytest.approx(weight, abs=5e-4) for number in in_all)
    assert len(elements(drawing, "rect", "word")) == 8  # padding is not drawn


def test_one_block_for_each_query_and_lines_that_wrap() -> None:
    words = [f"word{index}" for index in range(40)]
    layout = Layout("sentences", 2, 20)
    drawing = sentences(trace(words, ["yes", "no"], "hierarchical", layout))
    boxes = elements(drawing, "rect", "word")
    assert len(boxes) == 80
    rights = [float(box.get("x", 0)) + float(box.get("width", 0)) for box in boxes]
    assert max(rights) <= 770
    assert len({box.get("y") for box in boxes}) > 4


def test_an_empty_sentence_keeps_its_line() -> None:
    document = trace(["a", "b", "", "", "c", ""], "x", layout=Layout("sentences", 3, 2))
    drawing = sentences(document)
    assert len(elements(drawing, "rect", "word")) == 3
    assert [text for text in titles(drawing) if text.startswith("sentence 2")]


def test_arabic_begins_at_the_right() -> None:
    boxes = elements(
        sentences(trace(ARABIC, "x", layout=Layout("sentences", 1, 6))), "rect", "word"
    )
    places = [float(box.get("x", 0)) for box in boxes]
    assert places == sorted(places, reverse=True)


def test_other_layouts_are_an_error() -> None:
    with pytest.raises(ShapeError, match="sentences_trace"):
        sentences(trace("abc", "x"))
    with pytest.raises(ShapeError, match=r"2 \* 2 = 4 positions, got 3"):
        sentences(trace("abc", "x", layout=Layout("sentences", 2, 2)))
    many = [str(word) for word in range(2001)]
    with pytest.raises(ShapeError, match="at most 2000 words"):
        sentences(trace(many, "x", layout=Layout("sentences", 1, 2001)))
    with pytest.raises(ShapeError, match="sentences_trace: expected weights for 1 queries, 3"):
        _mismatched()


def _mismatched() -> None:
    layer = HierarchicalAttention(softmax_attention(4, 6), softmax_attention(4, 6))
    read = layer(torch.randn(1, 4), layer.remember(sentences_memory(torch.randn(3, 3, 6))))
    sentences_trace(read, kind="x", sentences=DOCUMENT, targets=["y"])


def test_no_words_and_no_output() -> None:
    assert "no output" in sentences(trace("ab", "", layout=Layout("sentences", 1, 2)))
    assert "no words" in sentences(trace("", "x", layout=Layout("sentences", 0, 0)))

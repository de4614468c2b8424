"""The numbers of a drawing as a text table."""

from dataclasses import replace

import pytest

from foveal.attention import AttentionTrace, Layout
from foveal.errors import ShapeError
from foveal.views import heads_table, weights_table
from foveal.views._tables import Table
from tests.inspection.drawings import HOSTILE, random_weights, trace


def test_a_sequence_has_a_row_for_each_output() -> None:
    table = weights_table(trace("ab", "xyz"))
    assert table.columns == ("output", "a", "b")
    assert [row[0] for row in table.rows] == ["x", "y", "z"]
    for row, weights in zip(table.rows, random_weights(3, 2), strict=True):
        assert [float(cell) for cell in row[1:]] == pytest.approx(weights, abs=5e-4)
    assert table.folded


def test_words_cells_and_facts_have_rows_of_their_own() -> None:
    words = AttentionTrace(
        kind="hierarchical",
        sources=("a", "b", "c", ""),
        targets=("x",),
        weights=((0.1, 0.2, 0.7, 0.0),),
        layout=Layout("sentences", 2, 2),
    )
    assert weights_table(words).rows == (
        ("1", "a", "0.100"),
        ("1", "b", "0.200"),
        ("2", "c", "0.700"),
    )
    facts = weights_table(trace(["It rains.", "Ann left."], ["1", "2"], layout=Layout("facts")))
    assert facts.columns == ("place", "1", "2")
    assert [row[0] for row in facts.rows] == ["It rains.", "Ann left."]


def test_heads_have_their_root_and_their_best() -> None:
    words = ("cats", "sleep")
    sentence = AttentionTrace(
        kind="syntactic",
        sources=words,
        targets=words,
        weights=((0.0, 0.8), (0.3, 0.0)),
        best=((False, True), (False, False)),
    )
    table = heads_table(sentence)
    assert table.columns == ("word", "best head", "none: it heads the sentence", *words)
    assert table.rows == (
        ("cats", "sleep", "0.200", "0", "0.800"),
        ("sleep", "none", "0.700", "0.300", "0"),
    )
    assert len(heads_table(replace(sentence, best=None)).columns) == 4


def test_a_table_too_large_to_read_has_the_strongest() -> None:
    labels = [str(index) for index in range(100)]
    table = weights_table(trace(labels, labels))
    assert len(table.rows) == 100
    first = random_weights(100, 100)[0]
    best = max(range(100), key=first.__getitem__)
    assert table.rows[0][1] == f"\u2068{best}\u2069 {first[best]:.3f}"
    assert weights_table(trace(HOSTILE, ["x"])).columns[1] == HOSTILE[0]


def test_ragged_rows_are_an_error() -> None:
    with pytest.raises(ShapeError, match="expected 2 cells in every row of 'Scores', got 1"):
        Table(caption="Scores", columns=("a", "b"), rows=(("1",),))

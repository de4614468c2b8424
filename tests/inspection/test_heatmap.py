"""The alignment heat map."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from foveal.attention import AttentionTrace
from foveal.errors import ShapeError, ValueRangeError
from foveal.views import heatmap
from tests.inspection.drawings import (
    ARABIC,
    ENGLISH,
    SVG,
    elements,
    parsed,
    pixels,
    random_weights,
    titles,
    trace,
    value,
)


def _cells(drawing: str) -> list[tuple[str, float]]:
    """Return the hover text and the ink of every cell."""
    return [
        (cell.findtext(f"{SVG}title") or "", float(cell.get("fill-opacity", 1)))
        for cell in elements(drawing, "rect", "cell")
    ]


weights = st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=4)


@settings(max_examples=50, deadline=None)
@given(weights)
def test_every_weight_can_be_read_back(rows: list[list[float]]) -> None:
    targets = tuple(f"t{index}" for index in range(len(rows)))
    table = tuple(map(tuple, rows))
    drawing = heatmap(
        AttentionTrace(kind="sigmoid", sources=("a", "b", "c"), targets=targets, weights=table)
    )
    read = [value(text) for text in titles(drawing) if " reads " in text]
    assert read == pytest.approx([weight for row in rows for weight in row], abs=5.1e-4)
    inks = [ink for _, ink in _cells(drawing)]
    order = np.argsort([weight for row in rows for weight in row], kind="stable")
    assert (np.diff(np.array(inks)[order]) >= 0).all()  # more weight, never less ink


def test_titles_name_both_ends() -> None:
    table = ((0.9, 0.1),)
    one = AttentionTrace(kind="softmax", sources=("a", "b"), targets=("x",), weights=table)
    assert titles(heatmap(one))[-2:] == ["x reads a: 0.900", "x reads b: 0.100"]


def test_the_scale_follows_small_weights_and_says_so() -> None:
    table = ((0.03,) * 20,)
    sources = tuple(map(str, range(20)))
    drawing = heatmap(AttentionTrace(kind="x", sources=sources, targets=("y",), weights=table))
    assert {ink for _, ink in _cells(drawing)} == {0.6}
    assert "0.05" in [text.text for text in elements(drawing, "text", "muted")]


def test_runs_of_selected_places_are_outlined() -> None:
    best = ((True, True, False, True), (False, False, False, False), (True, True, True, True))
    drawing = heatmap(
        AttentionTrace(
            kind="segment",
            sources=tuple("abcd"),
            targets=tuple("xyz"),
            weights=random_weights(3, 4),
            best=best,
        )
    )
    cell = float(elements(drawing, "rect", "cell")[0].get("width", 0))
    widths = [float(run.get("width", 0)) + 3 for run in elements(drawing, "rect", "best")]
    assert widths == pytest.approx([2 * cell, cell, 4 * cell])
    assert "outlined" in drawing
    assert not elements(heatmap(trace("abcd", "xyz")), "rect", "best")


def test_right_to_left_places_run_from_the_right() -> None:
    def order(sources: tuple[str, ...]) -> list[float]:
        cells = elements(heatmap(trace(sources, "x")), "rect", "cell")
        return [float(cell.get("x", 0)) for cell in cells]

    assert order(ENGLISH) == sorted(order(ENGLISH))
    assert order(ARABIC) == sorted(order(ARABIC), reverse=True)


def test_outlines_follow_the_direction() -> None:
    best = tuple((place < 2,) for place in range(6))
    drawing = heatmap(
        AttentionTrace(
            kind="segment",
            sources=ARABIC,
            targets=("x",),
            weights=random_weights(1, 6),
            best=(tuple(selected for (selected,) in best),),
        )
    )
    (run,) = elements(drawing, "rect", "best")
    first, second = elements(drawing, "rect", "cell")[:2]
    assert float(run.get("x", 0)) == pytest.approx(float(second.get("x", 0)) + 1.5)
    assert float(second.get("x", 0)) < float(first.get("x", 0))


def test_small_maps_have_their_numbers_written() -> None:
    drawing = heatmap(trace(ENGLISH, "abc"))
    written = [text for text in parsed(drawing).iter(f"{SVG}text") if text.get("pointer-events")]
    assert len(written) == len([None for text in titles(drawing) if value_or_none(text)])
    large = parsed(heatmap(trace([str(i) for i in range(40)], [str(i) for i in range(40)])))
    assert not [text for text in large.iter(f"{SVG}text") if text.get("pointer-events")]


def value_or_none(text: str) -> bool:
    return " reads " in text and value(text) >= 0.005


def test_forty_by_forty_is_small_enough() -> None:
    words = [f"word{index}" for index in range(40)]
    drawing = heatmap(trace(words, words))
    assert len(elements(drawing, "rect", "cell")) == 1600
    assert len(drawing.encode()) < 400_000


@pytest.mark.parametrize("table", ["sharp", "uniform"])
def test_a_very_large_map_is_a_raster_of_the_same_weights(table: str) -> None:
    sharp = random_weights(90, 120)
    rows = sharp if table == "sharp" else ((0.5,) * 120,) * 90
    labels = tuple(map(str, range(120)))
    drawing = heatmap(AttentionTrace(kind="x", sources=labels, targets=labels[:90], weights=rows))
    assert len(drawing.encode()) < 900_000
    (image,) = parsed(drawing).iter(f"{SVG}image")
    gray = pixels(image.get("href", ""))[..., 0] / 255
    top = 1.0 if table == "sharp" else 0.5
    np.testing.assert_allclose(gray * top, np.array(rows), atol=0.003)
    assert {ink for _, ink in _cells(drawing)} <= {0.0}  # hover text only
    assert len(_cells(drawing)) <= 4000


def test_a_huge_map_stays_bounded() -> None:
    labels = tuple(map(str, range(1100)))
    rows = tuple((0.0,) * place + (1.0,) + (0.0,) * (1099 - place) for place in range(1100))
    drawing = heatmap(AttentionTrace(kind="x", sources=labels, targets=labels, weights=rows))
    assert len(drawing.encode()) < 900_000


@pytest.mark.parametrize(("sources", "targets"), [((), ("x",)), (("a",), ()), ((), ())])
def test_nothing_is_said_in_words(sources: tuple[str, ...], targets: tuple[str, ...]) -> None:
    rows = ((),) * len(targets)
    drawing = heatmap(AttentionTrace(kind="x", sources=sources, targets=targets, weights=rows))
    assert ("no output" if not targets else "no input") in drawing


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -0.1])
def test_what_cannot_be_drawn_is_an_error(weight: float) -> None:
    bad = AttentionTrace(kind="x", sources=("a",), targets=("y",), weights=((weight,),))
    with pytest.raises(ValueRangeError, match=r"heatmap: .*'y' reads 'a'.*diverged"):
        heatmap(bad)


def test_the_probability_of_copying_is_a_bar_for_each_row() -> None:
    trace = AttentionTrace(
        kind="softmax",
        sources=("a", "b"),
        targets=("x", "y"),
        weights=((1.0, 0.0), (0.5, 0.5)),
        copied=(0.25, 1.0),
    )
    drawn = heatmap(trace)
    assert drawn.count("is copied with probability 0.250<") == 2  # the frame and the bar
    assert "bars: probability of copying" in drawn
    assert "copying" not in heatmap(replace(trace, copied=None))
    assert AttentionTrace.from_json(trace.to_json()) == trace
    with pytest.raises(ShapeError, match="each of 2 queries"):
        replace(trace, copied=(0.5,))

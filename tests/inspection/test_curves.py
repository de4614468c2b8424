"""Curves of a run."""

import math
import re

import pytest
from hypothesis import given, settings, strategies as st

from foveal.errors import ShapeError
from foveal.views import Series, curves, series_table
from foveal.views._curves import LEFT, PLOT_HEIGHT, PLOT_WIDTH, TOP, thinned
from tests.inspection.drawings import SVG, parsed, titles

LOSS = Series(
    name="loss", points=tuple((step, 3 * math.exp(-step / 40)) for step in range(0, 200, 10))
)


def test_every_point_can_be_read_back() -> None:
    read = [
        (float(step), float(value))
        for step, value in re.findall(
            r"at step (\S+): (\S+)", "\n".join(titles(curves([LOSS], title="x")))
        )
    ]
    assert read == [
        (pytest.approx(s, rel=1e-3), pytest.approx(v, rel=1e-3)) for s, v in LOSS.points
    ]


values = st.floats(-1e6, 1e6, allow_subnormal=False)


@settings(max_examples=50, deadline=None)
@given(st.lists(values, min_size=1, max_size=30))
def test_points_lie_in_the_plot_in_the_order_of_their_values(heights: list[float]) -> None:
    points = tuple((float(step), height) for step, height in enumerate(heights))
    root = parsed(curves([Series(name="x", points=points)], title="x"))
    dots = [(float(c.get("cx", 0)), float(c.get("cy", 0))) for c in root.iter(f"{SVG}circle")]
    assert len(dots) == len(heights)
    assert all(LEFT <= x <= LEFT + PLOT_WIDTH for x, _ in dots)
    assert all(TOP <= y <= TOP + PLOT_HEIGHT for _, y in dots)
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    drawn = [dots[index][1] for index in order]
    assert drawn == sorted(drawn, reverse=True)


def test_what_is_not_finite_breaks_the_line() -> None:
    points = ((0, 1.0), (1, 0.5), (2, math.nan), (3, math.inf), (4, 0.4), (5, 0.3))
    drawing = curves([Series(name="x", points=points)], title="diverged")
    (path,) = re.findall(r'class="s0" stroke-width="2"[^>]* d="([^"]*)"', drawing)
    assert re.sub(r"[^ML]", "", path) == "MLML"
    assert "nan" not in re.sub(r"<title>.*?</title>", "", drawing)
    rows = series_table([Series(name="x", points=points)]).rows
    assert rows[2] == ("2", "not a number")
    assert rows[3] == ("3", "inf")


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=400), st.integers(10, 60))
def test_thinning_keeps_ends_and_extremes(heights: list[float], limit: int) -> None:
    points = list(enumerate(heights))
    kept = thinned(points, limit)
    assert len(kept) <= limit
    assert kept == sorted(set(kept) & set(points))
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]
    assert min(height for _, height in kept) == min(heights)
    assert max(height for _, height in kept) == max(heights)


def test_a_long_run_stays_small() -> None:
    long = Series(name="x", points=tuple((step, math.sin(step / 500)) for step in range(20_000)))
    assert len(curves([long] * 4, title="long").encode()) < 250_000
    table = series_table([long])
    assert len(table.rows) <= 200
    assert table.rows[-1][0] == "2e+04"
    assert "one step in 100" in table.caption


def test_curves_differ_in_dash_and_not_only_in_color() -> None:
    many = [Series(name=str(index), points=((0, index), (1, index))) for index in range(8)]
    drawing = curves(many, title="many")
    dashes = re.findall(r'stroke-width="2.5"(?: stroke-dasharray="([^"]*)")?', drawing)
    assert len(set(dashes)) == 8
    with pytest.raises(ShapeError, match="at most 8 series, got 9"):
        curves([*many, LOSS], title="too many")


def test_steps_are_written_as_people_write_them() -> None:
    def ticks(last: int) -> str:
        return curves([Series(name="x", points=((0, 0.0), (last, 1.0)))], title="x")

    assert ">20k<" in ticks(100_000)
    assert ">1.5M<" in ticks(2_000_000)
    assert ">500<" in ticks(2000)
    assert ">0.5<" in ticks(2)


@pytest.mark.parametrize("series", [[], [Series(name="x", points=())]])
def test_nothing_to_draw(series: list[Series]) -> None:
    assert "no points" in curves(series, title="none")
    assert series_table(series).rows == ()


def test_one_point() -> None:
    assert len(titles(curves([Series(name="x", points=((5, 0.0),))], title="one"))) == 2

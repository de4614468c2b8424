"""How cost grows: the fit of the exponent, and all series at their smallest sizes."""

from pathlib import Path

import pytest

from benchmarks import growth
from benchmarks.results import Results
from benchmarks.timing import Plan

SIZES = (10, 30, 100, 300, 1_000)
QUICK = Plan(rounds=2, least_rounds=1, budget=0.01, block=1e-4, warm_up=0.0)


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 3.0])
def test_the_exponent_of_a_power_is_its_power(power: float) -> None:
    assert growth.exponent(SIZES, [2e-5 * size**power for size in SIZES]) == pytest.approx(power)


def test_a_constant_cost_of_small_sizes_does_not_hide_the_growth() -> None:
    costs = [0.1 + 1e-4 * size**2 for size in SIZES]
    assert 1.9 < growth.exponent(SIZES, costs) < 2.0
    assert growth.exponent(SIZES[:2], costs[:2]) < 0.6


@pytest.mark.parametrize("series", growth.SERIES, ids=lambda series: series.name)
def test_every_series_is_measured(series: growth.Series) -> None:
    small = series._replace(sizes=series.sizes[:2])
    found = {row.name: row for row in growth.rows(small, plan=QUICK)}
    assert all(found[f"time {series.name}, {size}"].value > 0 for size in small.sizes)
    assert all(found[f"memory {series.name}, {size}"].value > 0 for size in small.sizes)
    assert found[f"exponent of time {series.name}"].target == series.time + growth.TOLERANCE
    assert found[f"exponent of memory {series.name}"].unit == "exponent"


def test_the_file_keeps_the_axes_that_are_not_measured(tmp_path: Path) -> None:
    out = tmp_path / "growth.json"
    for call in ("beam search", "linear chain"):
        growth.main(["--calls", call, "--most", "30", "--out", str(out)])
    names = {row.name for row in Results.load(out).rows}
    assert {"time by beam, beam search, 8", "time by length, linear chain, 10"} <= names

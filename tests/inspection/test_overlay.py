"""Attention on an image."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from sightline.attention import AttentionTrace, Layout
from sightline.errors import ShapeError, ValueRangeError
from sightline.inspection import overlay
from sightline.inspection.views._overlay import DARKEST, _half
from sightline.inspection.views._png import data_uri, shrunk
from tests.inspection.drawings import SVG, elements, parsed, pixels, random_weights, titles, value


def _grid(rows: int, columns: int, targets: tuple[str, ...]) -> AttentionTrace:
    return AttentionTrace(
        kind="spatial",
        sources=tuple(f"{row},{column}" for row in range(rows) for column in range(columns)),
        targets=targets,
        weights=random_weights(len(targets), rows * columns),
        layout=Layout("grid", rows, columns),
    )


shapes = st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))


@settings(deadline=None)
@given(arrays.arrays(np.uint8, shapes))
def test_png_is_lossless(image: np.ndarray) -> None:
    np.testing.assert_array_equal(pixels(data_uri(image)), image)


@settings(deadline=None)
@given(arrays.arrays(np.uint8, shapes), st.integers(2, 8))
def test_a_smaller_image_keeps_its_mean(image: np.ndarray, longest: int) -> None:
    small = shrunk(image, longest)
    assert max(small.shape[:2]) <= longest
    assert small.min() >= image.min()
    assert small.max() <= image.max()
    even = np.full((64, 32, 3), 7, np.uint8)
    assert (shrunk(even, 10) == 7).all()


def test_every_weight_can_be_read_back_from_its_frame() -> None:
    words = ("a", "red", "circle")
    seen = _grid(4, 5, words)
    drawing = overlay(seen, np.zeros((40, 50), np.uint8))
    frames = elements(drawing, "g", "frame")
    assert len(frames) == 3
    read = [value(text) for text in titles(drawing) if " reads row " in text]
    assert read == pytest.approx([weight for row in seen.weights for weight in row], abs=5e-4)
    assert "red reads row 2, column 3" in " ".join(titles(drawing))


def test_the_image_is_kept_once_and_veiled_by_weight() -> None:
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    seen = _grid(2, 3, ("x", "y"))
    root = parsed(overlay(seen, image))
    first, *veils = [pixels(each.get("href", "")) for each in root.iter(f"{SVG}image")]
    np.testing.assert_array_equal(first, image)
    for veil, row in zip(veils, seen.weights, strict=True):
        weights = np.array(row).reshape(2, 3)
        np.testing.assert_allclose(
            veil[..., 0] / 255, DARKEST * (1 - weights / weights.max()), atol=0.003
        )


@settings(deadline=None)
@given(arrays.arrays(float, (3, 4), elements=st.floats(0, 1)))
def test_the_outline_holds_half_of_the_weight_in_the_fewest_cells(weights: np.ndarray) -> None:
    held = _half(weights)
    total = weights.sum()
    assert weights[held].sum() >= total / 2 - 1e-12
    ordered = np.sort(weights, axis=None)[::-1]
    if held.any() and total > 0:
        assert ordered[: held.sum() - 1].sum() < total / 2 + 1e-12


def test_one_held_cell_is_a_square_of_four_sides() -> None:
    rows = ((0.0, 0.0, 0.9, 0.1),)
    seen = AttentionTrace(
        kind="spatial",
        sources=tuple("abcd"),
        targets=("x",),
        weights=rows,
        layout=Layout("grid", 2, 2),
    )
    drawing = overlay(seen, np.zeros((10, 10)))
    outlines = [
        path.get("d", "")
        for path in parsed(drawing).iter(f"{SVG}path")
        if path.get("stroke") == "#fff"
    ]
    assert re.findall(r"M(\S+) (\S+)([hv])", outlines[0]) == [
        ("0.00", "84.00", "h"),
        ("0.00", "168.00", "h"),
        ("0.00", "84.00", "v"),
        ("84.00", "84.00", "v"),
    ]


def test_large_images_and_long_outputs_stay_bounded() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (900, 1200, 3), np.uint8)
    drawing = overlay(_grid(14, 14, tuple(f"word{i}" for i in range(40))), noise)
    assert len(drawing.encode()) < 950_000
    assert "no hover text below" in drawing


def test_no_output() -> None:
    drawing = overlay(_grid(2, 2, ()), np.zeros((4, 4)))
    assert "no output" in drawing
    assert not elements(drawing, "g", "frame")


def test_errors_say_what_to_do() -> None:
    seen = _grid(2, 2, ("x",))
    with pytest.raises(ShapeError, match=r"numpy\.moveaxis"):
        overlay(seen, np.zeros((3, 8, 9)))
    with pytest.raises(ValueRangeError, match="Undo the normalisation"):
        overlay(seen, np.full((4, 4), -1.5))
    with pytest.raises(ValueRangeError, match="int64"):
        overlay(seen, np.zeros((4, 4), np.int64))
    with pytest.raises(ValueRangeError, match="nan"):
        overlay(seen, np.full((4, 4), np.nan))
    with pytest.raises(ShapeError, match="layout is a grid"):
        overlay(AttentionTrace(kind="x", sources=("a",), targets=(), weights=()), np.zeros((4, 4)))
    with pytest.raises(ShapeError, match=r"2 \* 3 = 6 places, one at least, got 1"):
        overlay(
            AttentionTrace(
                kind="x", sources=("a",), targets=(), weights=(), layout=Layout("grid", 2, 3)
            ),
            np.zeros((4, 4)),
        )

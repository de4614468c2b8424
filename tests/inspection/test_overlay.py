"""Attention on an image."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from foveal.attention import AttentionTrace, Layout
from foveal.errors import ShapeError, ValueRangeError
from foveal.networks import ImageEncoder
from foveal.views import overlay
from foveal.views._overlay import DARKEST, _half
from foveal.views._png import data_uri, shrunk
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


@pytest.mark.parametrize(("row", "column"), [(0, 0), (2, 3), (4, 8), (4, 0)])
def test_weight_on_one_cell_is_drawn_over_the_pixels_that_it_sees(row: int, column: int) -> None:
    height, width, pitch = 38, 67, (8, 8)
    torch.manual_seed(0)
    encoder = ImageEncoder(1, sizes=(8, 8, 8))
    image = torch.rand(1, 1, height, width, requires_grad=True)
    memory = encoder(image)
    rows, columns = memory.layout.rows, memory.layout.columns
    assert (rows, columns) == (5, 9)
    # The cell sees 15 x 15 pixels around its center, fewer at an edge. Its center is the middle of
    # the full window, as if the image continued.
    memory.values[0, row * 9 + column].sum().backward()
    assert image.grad is not None
    seen = image.grad[0, 0].nonzero()
    (top, left), (bottom, right) = seen.amin(0).tolist(), seen.amax(0).tolist()
    y = (top + bottom) / 2 if top > 0 and bottom < height - 1 else 8 * row
    x = (left + right) / 2 if left > 0 and right < width - 1 else 8 * column
    assert (y, x) == (8 * row, 8 * column)

    weights = np.zeros(45)
    weights[row * 9 + column] = 1.0
    trace = AttentionTrace(
        kind="softmax",
        sources=tuple(map(str, range(45))),
        targets=("x",),
        weights=(tuple(weights.tolist()),),
        layout=Layout("grid", 5, 9, pitch),
    )
    drawing = parsed(overlay(trace, np.zeros((height, width), np.uint8)))
    _, veil = drawing.iter(f"{SVG}image")
    scale = 168 / width  # the frame is 168 wide
    step = [float(veil.get(side, "")) / n for side, n in (("height", 6), ("width", 10))]
    start = [float(veil.get(side, "")) for side in ("y", "x")]
    assert step == pytest.approx([8 * scale, 8 * scale], abs=0.01)
    dark = pixels(veil.get("href", ""))[..., 0]
    lit = dark == 0
    place = tuple(
        int(((center + 0.5) * scale - first) // each)
        for center, first, each in zip((y, x), start, step, strict=True)
    )
    assert place == (row, column)
    assert lit[place]
    assert lit.sum() == (1 + (row == 4)) * (1 + (column == 8))  # the last cell extends to the edge
    named = f"reads row {row + 1}, column {column + 1}: "
    (cell,) = [
        each for each in drawing.iter(f"{SVG}rect") if named in (each.findtext(f"{SVG}title") or "")
    ]
    for name, length, center, extent in (("x", "width", x, width), ("y", "height", y, height)):
        first = float(cell.get(name, ""))
        last = first + float(cell.get(length, ""))
        assert first == pytest.approx(max(0, (center - 3.5) * scale), abs=0.02)
        goes_on = center + 8 >= extent
        end = extent if goes_on else center + 4.5
        assert last == pytest.approx(end * scale, abs=0.02)


def test_a_layout_with_a_pitch_survives_json() -> None:
    seen = _grid(2, 2, ("x",))
    seen = replace(seen, layout=Layout("grid", 2, 2, (8, 4)))
    assert AttentionTrace.from_json(seen.to_json()) == seen


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
    with pytest.raises(ValueRangeError, match="Undo the normalization"):
        overlay(seen, np.full((4, 4), -1.5))
    with pytest.raises(ValueRangeError, match="int64"):
        overlay(seen, np.zeros((4, 4), np.int64))
    with pytest.raises(ValueRangeError, match="nan"):
        overlay(seen, np.full((4, 4), np.nan))
    with pytest.raises(ShapeError, match="layout is a grid"):
        overlay(AttentionTrace(kind="x", sources=("a",), targets=(), weights=()), np.zeros((4, 4)))
    with pytest.raises(ShapeError, match=r"2 \* 3 = 6 positions, at least one, got 1"):
        overlay(
            AttentionTrace(
                kind="x", sources=("a",), targets=(), weights=(), layout=Layout("grid", 2, 3)
            ),
            np.zeros((4, 4)),
        )

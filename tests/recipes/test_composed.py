"""Formulas composed of handwritten ones: no ink is lost, and the reader returns the composed image."""

from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image, ImageDraw

from examples.support import DATA
from foveal.data import Example, ImageSpec, LatexSpec, read_image
from recipes import image_to_latex
from recipes.rendered.composed import BLACK, WHITE, Piece, above, beside, draw_composed

IMAGE = ImageSpec(num_channels=1, height=200, width=400, trim=True, ink=0.2)
CANONICAL = LatexSpec(braces="canonical", signs="handwritten")


def page(path: Path, height: int, width: int) -> str:
    """Draw bars at equal distances with a pen of three pixels."""
    image = Image.new("L", (width, height), WHITE)
    for left in range(0, width, height // 2):
        ImageDraw.Draw(image).line((left, 0, left, height - 1), fill=BLACK, width=3)
    image.save(path)
    return str(path)


def piece(height: int, width: int, text: str) -> Piece:
    return Piece(np.full((height, width), BLACK, np.uint8), text)


def test_all_ink_of_both_is_there() -> None:
    high, low = piece(30, 12, "a"), piece(8, 40, "b")
    for first, second in ((high, low), (low, high)):
        for seed in range(20):
            line = np.asarray(beside(first, second, Random(seed)))
            assert (line == BLACK).sum() == 30 * 12 + 8 * 40
            assert (line[:, : first.picture.shape[1]] == BLACK).sum() == first.picture.size
            stack = np.asarray(above(first, second, Random(seed)))
            bar = (stack == BLACK).sum() - 30 * 12 - 8 * 40
            assert bar == stack.shape[1]
            assert (stack[: len(first.picture)] == BLACK).sum() == first.picture.size


def test_it_is_read_as_it_was_composed(tmp_path: Path) -> None:
    """Two pages whose letters differ in size by a factor of two contribute letters of one size."""
    texts = ("a + b", "x = y")
    written = [
        Example(page(tmp_path / f"{number}.png", height, 5 * height), text)
        for number, (height, text) in enumerate(zip((40, 80), texts, strict=True))
    ]
    heights = [read_image(Path(str(each.source)), IMAGE).shape[1] for each in written]
    assert max(heights) < 1.2 * min(heights) < 40
    kinds = set[str]()
    for number, item in enumerate(islice(draw_composed(written, IMAGE, CANONICAL, 1), 20)):
        symbols = CANONICAL.encode(item.text)
        kinds.add(symbols[0])
        assert [each for each in symbols if each in "abxy"] in (list("abxy"), list("xyab"))
        path = tmp_path / f"composed_{number}.png"
        Image.fromarray(item.picture).save(path)
        height = read_image(path, IMAGE).shape[1]
        lines = 2 if symbols[0] == r"\frac" else 1
        assert lines * min(heights) * 0.8 < height < lines * max(heights) + 20
    assert kinds == {r"\frac", "a", "x"}


def test_what_is_too_short_or_too_long_is_no_piece(tmp_path: Path) -> None:
    source = page(tmp_path / "page.png", 40, 200)
    texts = ["x", "a + b", "c + d", " + ".join("abcdefgh")]
    items = draw_composed([Example(source, text) for text in texts], IMAGE, CANONICAL, 1)
    found = {symbol for item in islice(items, 30) for symbol in CANONICAL.encode(item.text)}
    assert found == {"a", "b", "c", "d", "+", r"\frac", "{", "}"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder into which the recipe writes its files."""
    if not DATA.joinpath("crohme_png").exists():
        pytest.skip(f"data not found at {DATA}/crohme_png; foveal data get crohme_png")
    monkeypatch.setattr(image_to_latex, "ROOT", tmp_path)
    monkeypatch.setattr(image_to_latex, "HANDWRITTEN", tmp_path / ".cache/handwritten")
    return tmp_path / ".cache"


def test_handwritten_formulas_stand_before_composed_ones(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list(islice(image_to_latex._crohme("train"), 60))
    monkeypatch.setattr(image_to_latex, "_crohme", lambda _: written)
    monkeypatch.setattr(image_to_latex, "NUM_COMPOSED", 40)
    found = list(image_to_latex.part("crohme", "train"))
    assert (cache / "handwritten/manifest.json").exists()
    assert [each.target for each in found[:60]] == [each.target for each in written]
    assert len(found) == 100
    image = image_to_latex.IMAGES["crohme"]
    for ours, theirs in zip(found[:5], written, strict=False):
        assert read_image(Path(str(ours.source)), image).equal(
            read_image(Path(str(theirs.source)), image)
        )


def test_handwritten_formulas_to_choose_by_are_new(cache: Path) -> None:
    known, chosen = (
        {" ".join(CANONICAL.encode(each.target or "")) for each in image_to_latex._crohme(name)}
        for name in ("train", "dev")
    )
    assert len(chosen) > 500
    assert not known & chosen
    assert (cache / "lists/crohme_dev.tsv").exists()

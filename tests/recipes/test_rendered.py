"""Pictures that the project renders: one caption each, gold boxes, and the same pictures for the
same seed.
"""

import json
import subprocess
import sys
from itertools import islice, product
from multiprocessing import active_children
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from foveal.data import ImageSpec, image_list, read_frames, read_image
from recipes.rendered import render
from recipes.rendered.clips import NUM_FRAMES, VERBS, draw_clips
from recipes.rendered.formulas import draw_formulas
from recipes.rendered.grammar import formula
from recipes.rendered.scenes import HELD_OUT, HELD_OUT_PAIRS, SIDE, WIDEST_GAP, draw_scenes
from recipes.rendered.shapes import COLORS, GROUND, SHAPES, Thing, draw
from recipes.rendered.writing import write_pictures

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120


def test_every_formula_of_the_grammar_is_drawn_and_keeps_to_its_size() -> None:
    for number in range(60):
        random = Random(number)
        size = random.randint(1, 40)
        tokens = formula(random, size)
        assert 1 <= len(tokens) <= size
        assert render(tokens) is not None, tokens


def test_the_grammar_uses_all_of_its_kinds() -> None:
    seen = {token for number in range(2000) for token in formula(Random(number), 40)}
    assert {r"\frac", r"\sqrt", "[", r"\sum", r"\int", r"\lim", r"\sin", r"\hat", r"\prime"} <= seen
    assert {r"\left(", r"\right)", r"\alpha", r"\Omega", r"\infty", "|", r"\{"} <= seen
    assert len(seen) > 100


def test_spaces_change_nothing_and_what_is_no_formula_gives_none() -> None:
    tidy = render([r"\frac", "{", r"\alpha", *"x_{i}", "}", *"{2}"])
    assert tidy is not None
    assert (tidy[[0, -1]] == 255).all()  # a margin
    assert tidy.min() < 60
    for tokens in (
        [],
        ["}"],
        ["x", "^"],
        [r"\nosuchcommand"],
        ["$"],
        ["{"] * 150 + ["x"] + ["}"] * 150,
        [r"\left(", "x"],
        ["x"] * 500,
    ):
        assert render(tokens) is None


def test_scripts_belong_to_the_letter_before_them() -> None:
    lowered, raised = (render(["x", sign, "{", "i", "}"]) for sign in "_^")
    letter = render(["x"])
    assert lowered is not None
    assert raised is not None
    assert letter is not None
    # Next to a superscript the x is at the bottom; next to a subscript, at the top.
    assert (raised[-letter.shape[0] :, : letter.shape[1] - 2] == letter[:, :-2]).mean() > 0.9
    assert not np.array_equal(lowered, raised)


def test_formulas_are_different_and_follow_from_the_seed() -> None:
    before = set(active_children())  # processes of other tests
    first = list(islice(draw_formulas(1), 25))
    assert len({item.text for item in first}) == 25
    for processes in (1, 2):
        again = list(islice(draw_formulas(1, processes=processes), 25))
        for one, other in zip(first, again, strict=True):
            assert one.text == other.text
            assert np.array_equal(one.picture, other.picture)
    assert not set(active_children()) - before  # the processes have ended
    assert [item.text for item in islice(draw_formulas(2), 25)] != [item.text for item in first]


def looks_of(text: str) -> set[tuple[str, str, str]]:
    """Return the sizes, colors and shapes that a caption names."""
    names = {f"{shape}{ending}": shape for shape in SHAPES for ending in ("", "s", "es")}
    words = text.split()
    return {
        (size, color, names[shape])
        for size, color, shape in zip(words, words[1:], words[2:], strict=False)
        if color in COLORS
    }


def test_what_is_held_out_is_in_one_part_only() -> None:
    for item in islice(draw_scenes(1, "train"), 100):
        looks = looks_of(item.text)
        assert looks
        assert not looks & HELD_OUT
        assert not {look[1:] for look in looks} & HELD_OUT_PAIRS
    seen = set[tuple[str, str, str]]()
    for item in islice(draw_scenes(1, "held_out"), 60):
        looks = looks_of(item.text)
        assert looks & HELD_OUT
        assert not {look[1:] for look in looks} & HELD_OUT_PAIRS
        seen |= looks
    assert seen >= HELD_OUT
    for item in islice(draw_scenes(1, "held_out_pairs"), 30):
        looks = looks_of(item.text)
        assert {look[1:] for look in looks} & HELD_OUT_PAIRS
        assert not looks & HELD_OUT


def test_each_part_of_what_is_held_out_is_seen() -> None:
    looks = set.union(*(looks_of(item.text) for item in islice(draw_scenes(2, "train"), 600)))
    assert {look[0] for look in looks} == {"small", "large"}
    assert {look[1:] for look in looks} == {*product(COLORS, SHAPES)} - HELD_OUT_PAIRS


def test_the_boxes_of_a_word_hold_its_color_and_nothing_is_outside_of_all() -> None:
    for item in islice(draw_scenes(3, "train"), 40):
        assert item.boxes is not None
        words = item.text.split()
        assert len(words) == len(item.boxes)
        outside = item.picture.copy()
        for word, boxes in zip(words, item.boxes, strict=True):
            assert bool(boxes) == (word not in ("above", "below", "left", "right", "of", "and"))
            for left, top, right, bottom in boxes:
                assert 0 <= left < right <= SIDE
                assert 0 <= top < bottom <= SIDE
                if word in COLORS:
                    inside = item.picture[top:bottom, left:right].reshape(-1, 3)
                    assert (inside == COLORS[word]).all(1).any()
                outside[top:bottom, left:right] = GROUND
        assert (outside == GROUND).all()
        numbers = {"a": 1, "two": 2, "three": 3}
        assert all(
            len(boxes) == numbers[word]
            for word, boxes in zip(words, item.boxes, strict=True)
            if word in numbers
        )


def test_the_things_of_a_group_stand_together() -> None:
    for item in islice(draw_scenes(5, "train"), 60):
        assert item.boxes is not None
        for boxes in (boxes for boxes in item.boxes if len(boxes) > 1):
            around = np.array(boxes)
            gaps = np.maximum(
                around[:, None, :2] - around[None, :, 2:], around[None, :, :2] - around[:, None, 2:]
            ).max(-1)
            np.fill_diagonal(gaps, SIDE)
            assert (gaps > 0).all()
            assert (gaps.min(1) <= WIDEST_GAP + 2).all()  # boxes are in whole pixels


def test_the_relation_in_a_caption_holds() -> None:
    seen = set[str]()
    for item in islice(draw_scenes(4, "train"), 80):
        assert item.boxes is not None
        words = item.text.split()
        first = np.array(item.boxes[0])
        for number, word in enumerate(words):
            after = number + 2 if words[number + 1 : number + 2] == ["of"] else number + 1
            if word in ("above", "below", "left", "right"):
                seen.add(word)
                other, axis = np.array(item.boxes[after]), word in ("above", "below")
                before, behind = (first, other) if word in ("above", "left") else (other, first)
                assert before[:, axis + 2].max() <= behind[:, int(axis)].min()
    assert seen == {"above", "below", "left", "right"}


def test_shapes_are_different_and_keep_to_their_boxes() -> None:
    drawn = [draw([Thing(shape, "red", 20, 20, 9)], 40, 40) for shape in SHAPES]
    assert len({picture.tobytes() for picture in drawn}) == len(SHAPES)
    left, top, right, bottom = Thing("star", "red", 20, 20, 9).box()
    for picture in drawn:
        assert 60 < (picture == COLORS["red"]).all(-1).sum() < 400
        picture[top:bottom, left:right] = GROUND
        assert (picture == GROUND).all()


def test_clips_have_every_verb_and_move() -> None:
    items = list(islice(draw_clips(1, "train"), 120))
    assert {item.label for item in items} == set(VERBS)
    for item in items:
        assert item.picture.shape == (NUM_FRAMES, 56, 56, 3)
        assert item.label is not None
        assert item.label in item.text
        assert (
            (item.picture[0] != item.picture[4]).any()
            or (item.picture[0] != item.picture[6]).any()
            or "blinks" in item.text
        )
        assert (item.picture != GROUND).any()


def test_a_clip_that_is_written_is_read_frame_by_frame(tmp_path: Path) -> None:
    # Some of them blink, and have frames that equal the frame before.
    count = 25
    write_pictures(tmp_path, {"train": (draw_clips(1, "train"), count)}, {"what": "clips"})
    source = image_list(tmp_path / "train.tsv", tmp_path / "images.zip")
    expected = islice(draw_clips(1, "train"), count)
    for example, item in zip(source, expected, strict=True):
        frames = read_frames(Path(str(example.source)), ImageSpec(), max_frames=100)
        assert torch.equal(frames, torch.from_numpy(item.picture).permute(0, 3, 1, 2)), item.text
        assert example.target == item.text
    labels = image_list(tmp_path / "train.labels.tsv", tmp_path / "images.zip")
    assert {example.target for example in labels} <= set(VERBS)


@pytest.mark.parametrize("what", ["formulas", "scenes"])
def test_the_command_writes_the_same_from_one_seed(what: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        command = (sys.executable, "-m", "recipes.rendered", what, str(tmp_path / name))
        settings = ("--count", "12", "--held-out", "3", "--seed", "5")
        done = subprocess.run(
            [*command, *settings],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    one, two = tmp_path / "one", tmp_path / "two"
    manifest = json.loads((one / "manifest.json").read_text())
    assert (manifest["what"], manifest["seed"]) == (what, 5)
    assert {"train": 12, "dev": 3, "test": 3}.items() <= manifest["counts"].items()
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name
    examples = list(image_list(one / "train.tsv", one / "images.zip"))
    assert len(examples) == 12
    if what == "formulas":
        gray = ImageSpec(num_channels=1, width=400)
        for example in examples:
            assert example.target is not None
            again = render(example.target.split())
            read = read_image(Path(str(example.source)), gray)
            assert again is not None
            assert torch.equal(read[0], torch.from_numpy(again))
        short = list(image_list(one / "train.up_to_10.tsv", one / "images.zip"))
        assert all(len((example.target or "").split()) <= 10 for example in short)
        texts = [(one / f"{part}.tsv").read_text() for part in ("train", "dev", "test")]
        formulas = [line.split("\t")[1] for text in texts for line in text.splitlines()]
        assert len(set(formulas)) == len(formulas) == 18
    else:
        lines = (one / "held_out.boxes.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        assert [len(record["words"]) for record in records] == [
            len(record["boxes"]) for record in records
        ]

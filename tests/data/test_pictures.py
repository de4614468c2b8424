"""Batches of pictures are padded, masked, deduplicated and sorted by size, without unreadable files."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from PIL import Image
from torch import Tensor

from foveal.data import (
    BatchStream,
    Encoded,
    Example,
    ImageSpec,
    InMemory,
    collate_labelled,
    collate_pictures,
    collate_seq2seq,
    read_image,
)
from foveal.data._batches import PictureBatch, move
from foveal.data._example import Where
from foveal.data.images._pictures import collate_frames, collate_images
from foveal.data.streams._packed import Packed
from foveal.errors import DataError, ShapeError

pytestmark = pytest.mark.slow

SIZES = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 60)), min_size=1, max_size=6)


def picture(height: int, width: int, value: int = 255) -> Tensor:
    return torch.full((1, height, width), value, dtype=torch.uint8)


@settings(max_examples=30, deadline=None)
@given(sizes=SIZES)
def test_images_are_padded_and_the_mask_says_where(sizes: list[tuple[int, int]]) -> None:
    images, mask = collate_images([picture(h, w) for h, w in sizes])
    assert images.shape == (len(sizes), 1, max(h for h, _ in sizes), max(w for _, w in sizes))
    assert torch.equal(images[:, 0], mask.float())
    assert mask.sum((1, 2)).tolist() == [h * w for h, w in sizes]
    assert all(mask[row, :h, :w].all() for row, (h, w) in enumerate(sizes))


def test_clips_are_padded_in_time_too() -> None:
    clips = [torch.full((f, 3, 4, 5), 51, dtype=torch.uint8) for f in (2, 3)]
    frames, mask = collate_frames(clips)
    assert frames.shape == (2, 3, 3, 4, 5)
    assert mask.any((2, 3)).tolist() == [[True, True, False], [True, True, True]]
    assert frames[0, :, 0, 0, 0].tolist() == pytest.approx([0.2, 0.2, 0.0])


def test_pictures_of_different_channels_do_not_go_together() -> None:
    with pytest.raises(ShapeError, match=r"the same number of channels, got \[1, 3\]"):
        collate_images([picture(2, 2), torch.zeros(3, 2, 2, dtype=torch.uint8)])


def test_what_is_packed_comes_out_again_and_the_same_picture_is_kept_once() -> None:
    wide, high = picture(2, 3), picture(3, 2)
    shown = [wide, high, wide.clone(), wide]
    packed = Packed.pack(Encoded([n], [n], index=n, picture=p) for n, p in enumerate(shown))
    assert packed.pictures is not None
    assert len(packed.pictures.different) == 2  # equal bytes, but different shapes
    for example, expected in zip(packed.take(np.array([2, 1])), (wide, high), strict=True):
        assert example.picture is not None
        assert torch.equal(example.picture, expected)
    with pytest.raises(ShapeError, match="got 1 images for 2 examples"):
        Packed.pack([Encoded([1], picture=wide), Encoded([1])])


def test_a_batch_has_pictures_and_texts_and_moves_as_one() -> None:
    examples = [Encoded([], [5, 6], picture=picture(2, 2)), Encoded([], [7], picture=picture(1, 3))]
    batch = move(collate_pictures(examples, collate_seq2seq), "meta")
    assert batch.pictures.shape == (2, 1, 2, 3)
    assert batch.indices is batch.text.indices
    assert batch.text.indices.device == batch.pictures_mask.device == torch.device("meta")
    labeled = [Encoded([4, 4], [1], picture=torch.zeros(2, 1, 3, 3, dtype=torch.uint8))]
    assert collate_pictures(labeled, collate_labelled).pictures.shape == (1, 2, 1, 3, 3)
    with pytest.raises(ShapeError, match="expected examples with images, got none"):
        collate_pictures([Encoded([1], [1])], collate_labelled)


def sized_stream(seed: int, budget: int, *, by_length: bool = True) -> BatchStream[PictureBatch]:
    """Pictures with the sizes of printed lines: few heights, many widths."""
    generator = np.random.default_rng(5)
    sizes = [
        (int(h), int(w))
        for h, w in zip(
            generator.integers(16, 64, 400), generator.integers(40, 400, 400), strict=True
        )
    ]
    source = InMemory(tuple(Example(str(n), "x") for n in range(len(sizes))))
    return BatchStream(
        source,
        lambda example: Encoded([], [4], picture=picture(*sizes[int(example.text)])),
        partial(collate_pictures, collate_text=collate_seq2seq),
        budget=budget,
        seed=seed,
        by_length=by_length,
    )


def real_share(batches: Iterable[PictureBatch]) -> float:
    """Return the fraction of the batches that is not padding."""
    masks = [batch.pictures_mask for batch in batches]
    return sum(int(mask.sum()) for mask in masks) / sum(mask.numel() for mask in masks)


def test_batches_have_pictures_of_about_one_size_within_the_budget() -> None:
    budget = 4000
    batches = list(sized_stream(1, budget))
    seen = torch.cat([batch.text.indices for batch in batches])
    assert sorted(seen.tolist()) == list(range(400))
    for batch in batches:
        rows, _, height, width = batch.pictures.shape
        assert rows * (-(-height // 8) * -(-width // 8) + 2) <= budget
    assert real_share(batches) > 1.7 * real_share(sized_stream(1, budget, by_length=False))
    other = sized_stream(2, budget)
    assert [batch.text.indices.tolist() for batch in other] != [
        batch.text.indices.tolist() for batch in batches
    ]


def test_a_stream_of_pictures_goes_on_where_it_was() -> None:
    stream = sized_stream(3, 3000)
    given_out = iter(stream)
    for _ in range(4):
        next(given_out)
    state = stream.state()
    rest = [batch.text.indices.tolist() for batch in given_out]
    again = sized_stream(3, 3000)
    again.restore(state)
    assert [batch.text.indices.tolist() for batch in again] == rest


def folder_stream(folder: Path, names: list[str]) -> BatchStream:
    spec = ImageSpec(num_channels=1)
    source = InMemory(
        tuple(Example(name, "x", where=Where("list.tsv", n)) for n, name in enumerate(names, 1))
    )
    return BatchStream(
        source,
        lambda example: Encoded([], [4], picture=read_image(folder / example.text, spec)),
        partial(collate_pictures, collate_text=collate_seq2seq),
        batch_size=2,
    )


def test_a_picture_that_cannot_be_read_is_left_out_counted_and_named(tmp_path: Path) -> None:
    for name in ("a.png", "c.png"):
        Image.new("L", (4, 4)).save(tmp_path / name)
    (tmp_path / "b.png").write_bytes(b"no image")
    stream = folder_stream(tmp_path, ["a.png", "b.png", "c.png", "d.png"])
    assert sum(len(batch.text.indices) for batch in stream) == 2
    assert (stream.left_out.num, stream.left_out.num_unreadable) == (2, 2)
    assert stream.left_out.first == Where("list.tsv", 2)
    assert stream.left_out.why.startswith(
        f"list.tsv, line 2: {tmp_path / 'b.png'}: the file is in an unknown"
    )
    nothing = folder_stream(tmp_path, ["b.png", "d.png"])
    with pytest.raises(DataError, match="all 2 examples were skipped, 2 because their images"):
        next(iter(nothing))


def test_what_is_about_one_picture_comes_together_and_shows_it_once() -> None:
    shades = [torch.full((1, 4, 4), number, dtype=torch.uint8) for number in range(20)]
    source = InMemory(tuple(Example(str(n % 20), "x") for n in range(100)))
    stream = BatchStream(
        source,
        lambda example: Encoded([4], [0], picture=shades[int(example.text)]),
        partial(collate_pictures, collate_text=collate_labelled),
        batch_size=10,
        seed=3,
    )
    for batch in stream:
        assert len(batch.pictures) <= 3  # two with five questions each, or parts of three
        shown, mask = batch.for_each()
        numbers = [stream.where(int(index)).line for index in batch.indices]
        assert (shown[:, 0, 0, 0] * 255).round().tolist() == [number % 20 for number in numbers]
        assert mask.shape == (10, 4, 4)


def test_pictures_that_differ_stay_in_the_order_of_their_examples() -> None:
    examples = [Encoded([4], [0], picture=picture(2, width)) for width in (5, 3, 4)]
    batch = collate_pictures(examples, collate_labelled)
    assert batch.shown is None
    assert batch.pictures_mask.sum((1, 2)).tolist() == [10, 6, 8]

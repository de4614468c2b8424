"""Typed inputs: each has exactly one written form."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings, strategies as st
from typing_extensions import override

from foveal.data import (
    AbstractInput,
    Clip,
    Document,
    Encoded,
    Example,
    Facts,
    Picture,
    PictureQuestion,
    TextPair,
)
from foveal.data._example import Where
from foveal.data.streams._packed import Packed
from foveal.errors import DataError

LINE = st.text(
    st.characters(exclude_categories=("Cc", "Zl", "Zp", "Cs")), min_size=1, max_size=12
).filter(lambda text: text.strip())


@given(LINE, st.lists(LINE, max_size=4), st.binary())
@settings(deadline=None)
def test_the_written_form_is_read_back(line: str, lines: list[str], content: bytes) -> None:
    for value in (
        TextPair(line, line),
        Document((*lines, line)),
        Facts(tuple(lines), line),
        Picture(content),
        PictureQuestion(Picture(content), line),
        Clip(Path("clips/7")),
    ):
        assert type(value).parse(str(value)) == value
        assert Example(str(value)).input_as(type(value)) == value
        assert Example(value).input_as(type(value)) is value


def test_separators_inside_a_part_do_not_survive_writing() -> None:
    pair = TextPair("a\tb", "c\td")
    assert str(pair) == "a b\tc d"
    assert str(Document(("a\nb", "c"))) == "a b\nc"


def test_an_input_of_another_type_is_refused_with_both_names() -> None:
    where = Where("a.tsv", 4)
    with pytest.raises(DataError, match=r"a\.tsv, line 4: expected a text, got a pair of texts"):
        _ = Example(TextPair("a", "b"), where=where).text
    with pytest.raises(
        DataError, match=r"a\.tsv, line 4: expected a pair of texts, got a document"
    ):
        Example(Document(("a",)), where=where).input_as(TextPair)
    with pytest.raises(DataError, match="an image without a question, expected both"):
        Example("cat.png").input_as(PictureQuestion)
    with pytest.raises(
        DataError, match=re.escape("must be data:image/png;base64, followed by its bytes")
    ):
        Picture.parse("data:image/png,abc")


def test_an_image_may_be_read_as_a_clip_but_not_a_clip_as_an_image() -> None:
    picture = Picture(Path("cat.gif"))
    assert Example(picture).input_as(Clip) == Clip(Path("cat.gif"))
    with pytest.raises(DataError, match="expected an image, got a clip"):
        Example(Clip(Path("cat.gif"))).input_as(Picture)


@dataclass(frozen=True, slots=True)
class Dated(AbstractInput):
    """A text with a year, as user code might define it."""

    noun: ClassVar[str] = "a text with a year"
    year: int
    text: str

    @classmethod
    @override
    def parse(cls, text: str) -> "Dated":
        year, _, rest = text.partition(" ")
        return cls(int(year), rest)

    @override
    def __str__(self) -> str:
        return f"{self.year} {self.text}"


def test_a_type_from_outside_is_as_good() -> None:
    dated = Dated(1605, "En un lugar")
    assert Example(str(dated)).input_as(Dated) == dated
    with pytest.raises(
        DataError, match="expected a text, got a text with a year, '1605 En un lugar'"
    ):
        _ = Example(dated).text


def test_columns_keep_their_rows_whenever_they_first_come() -> None:
    """A column that only some examples have is empty for the examples before, between and after them."""
    before = [Encoded([n], index=n) for n in range(9)]
    after = [
        Encoded([1], [2], second=[3, 4], index=-1),
        Encoded([5], index=-2),
        Encoded([6], second=[], index=-3),
        Encoded([], [7], second=[8], index=-4),
        Encoded([9], index=-5),
    ]
    packed = Packed.pack([*before, *after])
    assert list(packed) == [*before, *after]
    assert packed.column("second").lengths.sum() == 3
    assert not packed.column("features").lengths.any()


def test_positions_count_but_for_those_of_other_columns() -> None:
    one = Encoded([4, 5], [6], second=[7, 8], features=[1], alignment=[0, 0], spelling=[1, 2])
    assert one.num_positions == 5
    assert Packed.pack([one]).other_lengths.tolist() == [3]
    assert one != Encoded([4, 5], [6], second=[7, 8])

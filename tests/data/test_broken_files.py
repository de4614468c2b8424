"""A broken file raises an error of one line that names file, line and remedy, or is handled.

Each file has good lines and one fault, so the line of the fault is known.
"""

import gzip
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from foveal.data import Example, open_source, tsv
from foveal.errors import DataError

pytestmark = pytest.mark.slow

MAX_LINE = 400
GOOD = st.tuples(
    st.text("abcdeáñßжア", min_size=1, max_size=8), st.text("kxyzɛ", min_size=1, max_size=8)
)
FAULTS = {
    "one column": b"alone",
    "three columns": b"a\tb\tc",
    "NUL": b"a\0b\tc",
    "invalid UTF-8": b"na\xefve\tx",
    "cut UTF-8": b"a\t\xc3",
    "surrogate": b"a\t\xed\xa0\x80",
    "gigantic": b"a\t" + b"x" * (MAX_LINE + 1),
    "lone CR": b"a\tb\rc\td",
}
HARMLESS = {
    "nothing": b"",
    "spaces": b"   ",
}


class Drawn(NamedTuple):
    good: list[tuple[str, str]]
    fault: str
    line: int  # counted from 0
    ending: bytes
    beginning: bytes
    last: bytes  # after the last line
    packing: str


@st.composite
def broken(draw: st.DrawFn) -> Drawn:
    good = draw(st.lists(GOOD, min_size=12, max_size=30))
    return Drawn(
        good=good,
        fault=draw(st.sampled_from([*FAULTS, *HARMLESS])),
        line=draw(st.integers(0, len(good))),
        ending=draw(st.sampled_from([b"\n", b"\r\n"])),
        beginning=draw(st.sampled_from([b"", b"\xef\xbb\xbf"])),
        last=draw(st.sampled_from([b"", b"\n", b"\r\n", b"\n\n"])),
        packing=draw(st.sampled_from(["plain", "gzip", "zstd"])),
    )


def content(drawn: Drawn) -> bytes:
    rows = [f"{source}\t{target}".encode() for source, target in drawn.good]
    rows.insert(drawn.line, (FAULTS | HARMLESS)[drawn.fault])
    data = drawn.beginning + drawn.ending.join(rows) + drawn.last
    return {"plain": lambda raw: raw, "gzip": gzip.compress, "zstd": zstandard.compress}[
        drawn.packing
    ](data)


def outcome(read: Callable[[], Iterable[Example]]) -> tuple[list[Example], str | None]:
    """Return the examples that could be read, and the error that ended reading."""
    found: list[Example] = []
    try:
        found.extend(read())
    except DataError as error:
        return found, str(error)
    return found, None


def assert_one_line(error: str, file: Path, line: int | None = None) -> None:
    """The error names file, line, problem and remedy."""
    number = r"\d+" if line is None else str(line)
    assert re.fullmatch(rf"{re.escape(str(file))}, line {number}: .+\. [A-Z].+", error), error


def pairs(examples: Iterable[Example]) -> list[tuple[str, str | None]]:
    return [(example.text, example.target) for example in examples]


def test_a_broken_file_is_an_error_that_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "some.tsv"

    @given(broken())
    @settings(max_examples=300, deadline=None)
    def check(drawn: Drawn) -> None:
        file.write_bytes(content(drawn))
        found, error = outcome(lambda: tsv(file, columns=2, max_line=MAX_LINE))
        assert all(example.where and example.where.file == str(file) for example in found)
        if drawn.fault in HARMLESS:
            assert error is None
            assert pairs(found) == drawn.good
        else:
            assert error is not None
            assert_one_line(error, file, drawn.line + 1)
            assert pairs(found) == drawn.good[: drawn.line]  # the lines before the fault were read

    check()


def test_the_same_when_the_format_is_inferred(tmp_path: Path) -> None:
    file = tmp_path / "some.tsv"

    @given(broken())
    @settings(max_examples=60, deadline=None)
    def check(drawn: Drawn) -> None:
        file.write_bytes(content(drawn))
        found, error = outcome(lambda: open_source(file, max_line=MAX_LINE).source)
        if drawn.fault in HARMLESS:
            assert pairs(found) == drawn.good
        else:
            assert error is not None
            assert_one_line(error, file, drawn.line + 1)

    check()


def test_any_bytes_are_read_or_refused(tmp_path: Path) -> None:
    suffixes = ["tsv", "jsonl", "conllu", "conll", "txt", "csv", "tsv.gz", "zst", ""]

    @given(st.binary(max_size=200), st.sampled_from(suffixes))
    @settings(max_examples=300, deadline=None)
    def check(data: bytes, suffix: str) -> None:
        file = tmp_path / f"some.{suffix}"
        file.write_bytes(data)
        _, error = outcome(lambda: open_source(file).source)
        if error is not None:
            assert_one_line(error, file)

    check()


def test_any_json_is_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    signs = ["{", "}", "[", "]", '"source"', '"target"', ":", ",", '"a"', "1", "null"]
    whole = ['{"source": "a", "target": "b"}', '{"source": "\\ud800"}', '{"source": ["a", "b"]}']

    @given(st.lists(st.sampled_from([*signs, *whole]), max_size=8))
    @settings(max_examples=200, deadline=None)
    def check(parts: list[str]) -> None:
        file.write_text("".join(parts), encoding="utf-8")
        _, error = outcome(lambda: open_source(file).source)
        if error is not None:
            assert_one_line(error, file, 1)

    check()


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_packed_file_cut_short_is_refused_where_it_ends(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    rows = [f"word{number}\t{number * 7919 % 1000} x" for number in range(5000)]
    whole = pack("\n".join(rows).encode())
    file = tmp_path / "some.tsv"
    for size in (len(whole) - 1, len(whole) // 2, 8):
        file.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"some.tsv, line \d+: .*Download or compress"):
            list(tsv(file))
    file.write_bytes(whole[: len(whole) // 2] + b"junk" * 20 + whole[len(whole) // 2 + 80 :])
    with pytest.raises(DataError, match=r"some.tsv, line \d+: "):
        list(tsv(file))


def test_a_bomb_of_one_line_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.tsv.zst"
    compressor = zstandard.ZstdCompressor().compressobj()
    with file.open("wb") as handle:
        for _ in range(1000):
            handle.write(compressor.compress(b"a" * (1 << 20)))
        handle.write(compressor.flush())
    assert file.stat().st_size < 100_000
    with pytest.raises(
        DataError, match=r"line 1: the line is longer than 1,048,576 bytes.*increase"
    ):
        list(tsv(file))


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("empty.tsv", b"", "line 1: the file is empty.*Use a file"),
        ("bom.tsv", b"\xef\xbb\xbf", "line 1: the file is empty"),
        ("blank.tsv", b"\n\n  \n", "line 1: the file is empty"),
        ("utf16.tsv", "a\tb".encode("utf-16"), "line 1: the file is UTF-16.*iconv"),
        ("archive.zip", b"PK\x03\x04junk", "line 1: the file is a zip archive.*Extract"),
        ("some.tsv.bz2", b"BZh91AY", "line 1: the file is compressed with bzip2"),
        (
            "some.tsv",
            b"word p h o\n",
            "line 1: 1 column, expected at least 2 separated by tabs.*Put a tab",
        ),
        ("some.jsonl", b"[" * 100_000, "line 1: the JSON is nested too deeply"),
        ("some.jsonl", b'{"text": 1, "label": {}}', "line 1: 'label' must be text.*got '{}'"),
        ("some.conllu", b"1\tword\n", "line 1: 2 columns, expected at least 4"),
        ("some.conllu", b"1\tword\tword\t \n", "line 1: a word or its tag is empty.*Write _"),
    ],
)
def test_what_users_really_do(tmp_path: Path, name: str, data: bytes, text: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    _, error = outcome(lambda: open_source(file).source)
    assert error is not None
    assert_one_line(error, file, 1)
    assert re.search(text, error), error


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.tsv: cannot be read: No such file.*Check the path"):
        list(tsv(tmp_path / "none.tsv"))
    with pytest.raises(DataError, match=r"cannot be read: Is a directory.*pattern"):
        list(tsv(tmp_path))
    with pytest.raises(DataError, match=r"part-\*.tsv: no file matches this pattern"):
        list(tsv(tmp_path / "part-*.tsv"))
    with pytest.raises(DataError, match="at least one file"):
        list(tsv([]))


def test_any_number_of_empty_files_is_no_example(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.tsv").touch()
    assert list(tsv(tmp_path / "*.tsv")) == []

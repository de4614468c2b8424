"""Tables with commas, semicolons or tabs: headers, column names, and irregular files of users."""

import csv as standard_csv
import random
from pathlib import Path

import pytest

from foveal import specs
from foveal.data import CommaSeparated, Example, SourceSpec, TabSeparated, csv, open_source, tsv
from foveal.data.formats._tables import in_files, without_target
from foveal.errors import DataError


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def pairs(source: SourceSpec) -> list[tuple[str, str | None]]:
    return [(example.text, example.target) for example in source]


@pytest.mark.parametrize(
    ("text", "source", "target", "reason"),
    [
        ("word,pron\ncat,k a t\n", "word", "pron", "2 columns, named in the first line: text in"),
        ("ortho,ipa\ncat,k a t\n", "ortho", "ipa", "text in 'ortho', target in 'ipa'"),
        ("id,Text,Label\n1,good,pos\n", "Text", "Label", "ignored: 'id'"),
        (",text,label\n0,good,pos\n", "text", "label", "named in the first line"),  # pandas
        ("a,b\ngood film,5\nbad film,1\n", "a", "b", "named"),  # the rows have numbers and texts
        ("cat,k a t\ndog,d o g\n", 0, 1, "no header (if the names of the columns are 'cat'"),
        ("word;pron\ncat, the;k a t\n", "word", "pron", "separated by semicolons, 2 columns"),
        ("text\ncat\n", "text", None, "1 column, named in the first line: text in 'text'"),
        ("premise,hypothesis,label\na b,b,yes\n", "premise", "label", "second text in"),
    ],
)
def test_the_columns_of_a_csv_file_are_inferred(
    text: str, source: int | str, target: int | str | None, reason: str, tmp_path: Path
) -> None:
    opened = open_source(write(tmp_path / "some.csv", text))
    assert isinstance(opened.source, CommaSeparated)
    assert (opened.source.source, opened.source.target) == (source, target)
    assert reason in opened.reason
    assert len(list(opened.source)) == text.count("\n") - isinstance(source, str)


def test_cells_in_quotes(tmp_path: Path) -> None:
    text = '\ufeffword,pron\r\n"a, b","say ""a"""\r\n"two\r\nlines", x\r\n\r\n,\r\n'
    opened = open_source(write(tmp_path / "some.csv", text))
    assert pairs(opened.source) == [("a, b", 'say "a"'), ("two\nlines", "x")]
    assert [example.where.line for example in opened.source if example.where] == [2, 3]


def test_what_the_standard_library_writes_is_read_back(tmp_path: Path) -> None:
    """Random cells contain separators, quotes, line breaks and spaces."""
    draw = random.Random(0)
    signs = 'ab ,;"\n'
    rows = [
        ["x" + "".join(draw.choices(signs, k=draw.randrange(9))) + "x" for _ in range(2)]
        for _ in range(300)
    ]
    for delimiter in (",", ";"):
        path = tmp_path / f"some{ord(delimiter)}.csv"
        with path.open("w", newline="") as file:
            standard_csv.writer(file, delimiter=delimiter).writerows([["text", "label"], *rows])
        source = csv(path, "text", "label", delimiter=delimiter)
        assert pairs(source) == [tuple(row) for row in rows]


def test_a_column_goes_by_its_name(tmp_path: Path) -> None:
    file = write(tmp_path / "some.tsv", "n\tword\tpron\n1\tcat\tk a t\n")
    assert pairs(tsv(file, "word", "pron")) == [("cat", "k a t")]
    assert pairs(tsv(file, source="pron", target=0)) == [("k a t", "1")]
    spec = specs.with_setting(open_source(file).source, "source", "pron")
    spec = specs.with_setting(spec, "target", "word")
    assert pairs(spec) == [("k a t", "cat")]
    assert specs.from_json(TabSeparated, specs.to_json(spec)) == spec
    assert specs.with_setting(spec, "target", "none").target is None


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (
            "prom",
            r"some.csv, line 1: no column 'prom' in the header, which has 'word', 'pron'. Did",
        ),
        ("zzz", r"which has 'word', 'pron'. Use one of these names, or a number"),
        (2, r"line 2: 2 columns, expected at least 3 \('word', 'pron'\)"),
    ],
)
def test_a_column_that_is_not_there(column: int | str, said: str, tmp_path: Path) -> None:
    file = write(tmp_path / "some.csv", "word,pron\ncat,k a t\n")
    with pytest.raises(DataError, match=said):
        list(csv(file, "word", column))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a,b\nc,d, e\n", r"line 2: 3 columns, expected 2 .* Put a cell .* in double quotes"),
        (b"text,label\nc\n", r"line 2: 1 column, expected 2 \('text', 'label'\)"),
        (
            b'a,b\n"c,d\ne,f\n',
            "line 2: invalid CSV: unexpected end of data, in the row that begins here",
        ),
        (b'a,b\nc,d\n"c" x,d\n', "line 3: invalid CSV"),
        (b"a,b\nc\xff,d\n", "line 2: byte 2 is 0xff"),
        (b"\n,\n", "line 2: the file has no rows"),
    ],
)
def test_a_fault_is_named_by_its_line(text: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_bytes(text)
    with pytest.raises(DataError, match=rf"some\.csv, {said}"):
        list(open_source(file).source)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    file = write(tmp_path / "some.csv", "text,label,label\na,b,c\n")
    assert pairs(open_source(file).source) == [("a", "b")]  # selected by column number
    with pytest.raises(DataError, match="several columns have the name 'label'"):
        list(csv(file, "text", "label"))


def test_other_files_are_read_by_the_names_of_the_first(tmp_path: Path) -> None:
    """The order of columns may differ; a file without a header uses the column numbers."""
    train = csv(write(tmp_path / "train.csv", "n,ortho,phono\n1,cat,k a t\n"), "ortho", "phono")
    for text in ("phono,ortho\nd o g,dog\n", "phono;x;ortho\nd o g;;dog\n", "1,dog,d o g\n"):
        opened = open_source(write(tmp_path / "test.csv", text)).source
        assert isinstance(opened, CommaSeparated)
        assert pairs(in_files(train, opened)) == [("dog", "d o g")]
    gone = open_source(write(tmp_path / "test.csv", "1,dog,d o g\n")).source
    assert isinstance(gone, CommaSeparated)
    with pytest.raises(
        DataError, match=r"test\.csv, line 1: no header with the column 'ortho', and"
    ):
        in_files(csv(tmp_path / "gone.csv", "ortho", "phono"), gone)
    opened = open_source(write(tmp_path / "test.csv", "ortho\ndog\n")).source
    assert isinstance(opened, CommaSeparated)
    with pytest.raises(DataError, match="no column 'phono' in the header, which has 'ortho'"):
        list(in_files(train, opened))
    (asked,) = without_target(in_files(train, opened), second=False, features=False)
    assert asked == Example("dog", None, where=asked.where)

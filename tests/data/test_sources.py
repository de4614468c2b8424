"""Sources: every format, compressed or not, in parts, and from any position."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from foveal import specs
from foveal.data import (
    Example,
    Facts,
    InMemory,
    LineReader,
    Source,
    SourceSpec,
    babi,
    conllu,
    csv,
    json_lines,
    open_source,
    parallel,
    regex_lines,
    tsv,
)
from foveal.data._example import Where
from foveal.data._source import Position
from foveal.data.formats._formats import lines
from foveal.errors import DataError, SpecError

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "gzip in two members": lambda raw: gzip.compress(raw[:50]) + gzip.compress(raw[50:]),
    "zstd in two frames": lambda raw: zstandard.compress(raw[:50]) + zstandard.compress(raw[50:]),
}
TSV = "".join(f"wörd{number}\tw {number}\n" for number in range(40))
CONLLU = "\n".join(
    f"# sent_id = {number}\n1-2\tdel\t_\t_\n1\tde\tde\tADP\n2\tel {number}\tel\tDET\n"
    for number in range(12)
)
BABI = "".join(
    f"1 Mary is in room {number}.\n2 John left.\n3 Where is Mary? \troom\t1\n"
    f"4 Mary left.\n5 Where is John?\tgone\t2 4\n"
    for number in range(6)
)
CSV = "id,word,pron\n" + "".join(f'{n},"wörd, {n}\nof ""two"" lines",w {n}\n\n' for n in range(12))
IN_OUT = "IN: (?P<source>.*) OUT: (?P<target>.*)"
JSON = "".join(json.dumps({"x": f"ä{n}", "y": n, "z": ["a", "b"]}) + "\n" for n in range(20))


def write(folder: Path, name: str, text: str, packing: str = "plain") -> Path:
    path = folder / name
    path.write_bytes(PACKINGS[packing](text.encode()))
    return path


def a_source(kind: str, folder: Path, packing: str = "plain") -> Source:
    match kind:
        case "tsv":
            return tsv(write(folder, "some.tsv", TSV, packing))
        case "named":
            return tsv(write(folder, "some.tsv", f"a\tb\n{TSV}", packing), "b", "a")
        case "csv":
            return csv(write(folder, "some.csv", CSV, packing), "word", "pron")
        case "conllu":
            return conllu(write(folder, "some.conllu", CONLLU, packing))
        case "babi":
            return babi(write(folder, "some.txt", BABI, packing))
        case "json_lines":
            return json_lines(write(folder, "some.jsonl", JSON, packing), "x", "z", features="y")
        case "regex_lines":
            text = TSV.replace("wö", "IN: wö").replace("\t", " OUT: ")
            return regex_lines(write(folder, "some.in_out", text, packing), IN_OUT)
        case "lines":
            return lines(write(folder, "some.lines", TSV, packing))
        case "parallel":
            return parallel(
                write(folder, "some.ja", TSV, packing),
                write(folder, "some.en", TSV.replace("w", "the w"), packing),
            )
        case _:
            return InMemory(tuple(Example(str(number)) for number in range(9)))


KINDS = [
    "tsv",
    "named",
    "csv",
    "conllu",
    "babi",
    "json_lines",
    "regex_lines",
    "lines",
    "parallel",
    "memory",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_can_be_read_again(kind: str, tmp_path: Path) -> None:
    source = a_source(kind, tmp_path)
    first = list(source)
    assert len(first) > 5
    assert list(source) == first


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("kind", KINDS[:-1])
def test_packed_files_are_read_as_plain_ones(kind: str, packing: str, tmp_path: Path) -> None:
    plain = list(a_source(kind, tmp_path))
    assert list(a_source(kind, tmp_path, packing)) == plain


@pytest.mark.parametrize("packing", ["plain", "gzip in two members", "zstd"])
@pytest.mark.parametrize("kind", KINDS)
def test_reading_goes_on_from_any_position(kind: str, packing: str, tmp_path: Path) -> None:
    source = a_source(kind, tmp_path, packing)
    everything = list(source)
    (shard,) = source.shards()
    cursor = source.open(shard)
    for done in range(len(everything) + 1):
        position = Position.from_data(json.loads(json.dumps(cursor.position().to_data())))
        assert list(source.open(shard, position)) == everything[done:]
        assert next(cursor, None) == (everything[done] if done < len(everything) else None)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", ["tsv", "named", "json_lines", "lines", "parallel"])
def test_blocks_of_a_file_are_the_file(
    kind: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foveal.data._bytes.CHUNK", 64)
    source = a_source(kind, tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", ending.encode()))
    everything = list(source)
    for size in (1, 100, 10_000):
        shards = source.shards(block=size)
        assert (len(shards) > 3) == (size <= 100)
        parts = [list(source.open(shard)) for shard in shards]
        assert all(parts)
        assert [example for part in parts for example in part] == everything


@pytest.mark.parametrize("kind", ["conllu", "babi", "csv"])
def test_what_goes_over_several_lines_stays_together(kind: str, tmp_path: Path) -> None:
    assert len(a_source(kind, tmp_path).shards(block=10)) == 1
    assert len(a_source(kind, tmp_path, "gzip").shards(block=10)) == 1


def test_a_pattern_is_all_its_files_in_order(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        write(tmp_path, f"part-{name}.tsv", f"{name}\tx\n")
    write(tmp_path, "other.tsv", "other\tx\n")
    source = tsv(tmp_path / "part-[ab].tsv")
    assert [example.source for example in source] == ["a", "b"]
    assert [example.source for example in tsv([tmp_path / "other.tsv", *source.paths])] == [
        "other",
        "a",
        "b",
    ]
    write(tmp_path, "part-[ab].tsv", "itself\tx\n")  # a file with exactly this name
    assert [example.source for example in source] == ["itself"]
    nested = tmp_path / "deep" / "er"
    nested.mkdir(parents=True)
    write(nested, "part-d.tsv", "d\tx\n")
    found = [example.text for example in tsv(tmp_path / "**" / "part-*.tsv")]
    assert sorted(found) == ["a", "b", "c", "d", "itself"]


def test_columns(tmp_path: Path) -> None:
    file = write(tmp_path, "some.tsv", "lemma \tV;PST\tform\t0-0\n\nb\tN\t\t\n")
    assert list(tsv(file, 0, 2, 1, 3)) == [
        Example("lemma", "form", "V;PST", "0-0", Where(str(file), 1)),
        Example("b", "", "N", "", Where(str(file), 3)),
    ]
    assert next(iter(tsv(file, 2, None))) == Example("form", None, "", "", Where(str(file), 1))
    assert [example.source for example in tsv(file, header=True)] == ["b"]


def test_a_header_is_left_out_of_its_file_only(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path, f"{name}.tsv", f"source\ttarget\n{name}\tx\n")
    source = tsv(tmp_path / "*.tsv", header=True)
    assert [example.source for example in source] == ["a", "b"]
    parts = [list(source.open(shard)) for shard in source.shards(block=1)]
    assert [example.source for part in parts for example in part] == ["a", "b"]


def test_json_values(tmp_path: Path) -> None:
    values = ["text", 3, 2.5, True, ["two", "words"]]
    text = "".join(json.dumps({"source": value, "target": "t"}) + "\n" for value in values)
    found = [example.source for example in json_lines(write(tmp_path, "some.jsonl", text))]
    assert found == ["text", "3", "2.5", "true", "two words"]
    with pytest.raises(DataError, match=r"line 1: no 'sources' in the object.*mean 'source'"):
        list(json_lines(tmp_path / "some.jsonl", source="sources"))


def test_parallel_files_of_different_lengths(tmp_path: Path) -> None:
    long, short = write(tmp_path, "a", "1\n2\n3\n"), write(tmp_path, "b", "1\n2\n")
    with pytest.raises(DataError, match=r"/b, line 2: the file ends here, but .*/a has a line 3"):
        list(parallel(long, short))
    with pytest.raises(DataError, match=r"/b, line 2: the file ends here, but .*/a has a line 3"):
        list(parallel(short, long))
    with pytest.raises(DataError, match="2 source and 1 target files"):
        list(parallel([long, short], short))


def test_sentences_and_tags(tmp_path: Path) -> None:
    (first, *_) = a_source("conllu", tmp_path)
    assert (first.source, first.target) == ("de el\N{NO-BREAK SPACE}0", "ADP DET")
    entities = write(tmp_path, "ner", "#Foveal\tB-product\nhere\tO\n\n\n\nnow\tO")
    assert [(example.source, example.target) for example in conllu(entities, 0, 1)] == [
        ("#Foveal here", "B-product O"),
        ("now", "O"),
    ]


def test_a_question_has_the_story_before_it(tmp_path: Path) -> None:
    first, second, third, *_ = a_source("babi", tmp_path)
    assert first.source == Facts(("Mary is in room 0.", "John left."), "Where is Mary?")
    assert (first.target, first.alignment) == ("room", "0-0")
    assert str(second.source) == "Mary is in room 0.\nJohn left.\nMary left.\nWhere is John?"
    assert (second.target, second.alignment) == ("gone", "1-0 2-0")
    assert third.input_as(Facts).facts[0] == "Mary is in room 1."
    for text, error in (
        ("2 Mary left.\n", "line 1: expected the number 1 and a space"),
        ("1 Mary left.\n3 John left.\n", "line 2: expected the number 2 or 1"),
        ("1 Mary left.\n2 Who?\tMary\t7\n", "line 2: the supporting fact is line '7'"),
        ("1 Mary left.\n2 Who?\t\t1\n", "line 2: expected question, answer"),
    ):
        with pytest.raises(DataError, match=error):
            list(babi(write(tmp_path, "wrong", text)))


def test_the_groups_of_a_pattern_are_the_parts_of_an_example(tmp_path: Path) -> None:
    first, *_ = a_source("regex_lines", tmp_path)
    assert (first.source, first.target, first.features) == ("wörd0", "w 0", "")
    path = write(tmp_path, "forms", "go (V;PST) went\n\nbe alone\n")
    source = regex_lines(path, r"(?P<source>\w+) (\((?P<features>.*)\))?(?P<target>.*)")
    assert [(each.source, each.features, each.target) for each in source] == [
        ("go", "V;PST", "went"),
        ("be", "", "alone"),
    ]
    with pytest.raises(DataError, match="line 3: expected a line like"):
        list(regex_lines(path, r"(?P<source>\w+) \(.*"))
    for pattern, error in (
        ("(?P<source>.*", "invalid regular expression"),
        ("(.*)", "include source, got none"),
        ("(?P<source>.*)=(?P<goal>.*)", "got goal, source"),
    ):
        with pytest.raises(SpecError, match=error):
            regex_lines(path, pattern)


def test_a_source_is_a_spec(tmp_path: Path) -> None:
    for kind in KINDS[:-1]:
        source = a_source(kind, tmp_path)
        again = specs.from_json(SourceSpec, specs.to_json(source))
        assert again == source
        assert list(again) == list(source)
    changed = specs.with_setting(tsv("a.tsv"), "features", "2")
    assert changed == tsv("a.tsv", features=2)


@pytest.mark.parametrize(
    ("name", "text", "expected", "reason"),
    [
        ("a.tsv", "ab\tx y\n", tsv("a.tsv", columns=2), "2 columns: text in the first, target in"),
        (
            "a",
            "go\tV;PST\twent\nbe\tV;PST\twas\n",
            tsv("a", 0, 2, 1, columns=3),
            "features in the second",
        ),
        (
            "a",
            "go\twent\tV;PST\nbe\twas\tV;PST\n",
            tsv("a", 0, 1, 2, columns=3),
            "features in the third",
        ),
        ("a", "go\tV;PST\nbe\tV;PST\n", tsv("a", 0, None, 1, columns=2), "features in the second"),
        ("a", "a b\tc d\t0-0 1-1\n", tsv("a", alignment=2, columns=3), "alignment in the third"),
        ("a", "ab\tx y\t1\n" * 9 + "cd\tx\n", tsv("a", columns=3), "3 columns"),
        ("a", "ab\tx\t1\n" * 3 + "cd\tx\n" * 2, tsv("a"), "3 columns"),
        (
            "a",
            "label\ttext\npos\tgood\n",
            tsv("a", "text", "label", columns=2, header=True),
            "named in the first line",
        ),
        (
            "a",
            "".join(f"{'pos' if n % 3 else 'neg'}\tthe film number {n} was\n" for n in range(60)),
            tsv("a", 1, 0, columns=2),
            "label in the first (2 different in 60 lines), text in the second",
        ),
        (  # sorted by label: the first lines all have the same label
            "a",
            "".join(f"{'no' if n < 500 else 'yes'}\tthe film number {n} was\n" for n in range(900)),
            tsv("a", 1, 0, columns=2),
            "label in the first (1 different in 200 lines)",
        ),
        (  # the same lines, but the header names the columns
            "a",
            "source\ttarget\n" + "".join(f"neg\tthe film number {n} was\n" for n in range(60)),
            tsv("a", "source", "target", columns=2, header=True),
            "text in 'source', target in 'target'",
        ),
        (  # inflected forms of few lemmas
            "a",
            "".join(f"walk\twalk{n}\n" for n in range(60)),
            tsv("a", columns=2),
            "text in the first, target in the second",
        ),
        (  # a dictionary with several pronunciations for each word
            "a",
            "".join(f"ab{n // 4}\tA B long {n}\n" for n in range(80)),
            tsv("a", columns=2),
            "text in the first, target in the second",
        ),
        (  # too few lines for a decision
            "a",
            "pos\tthe best of films\nneg\tthe worst of films\n" * 3,
            tsv("a", columns=2),
            "text in the first, target in the second",
        ),
        ("a.jsonl", JSON, json_lines("a.jsonl", "x", "y"), "the text in 'x', the target in 'y'"),
        ("a", '{"label": "b", "text": "c"}', json_lines("a", "text", "label"), "JSON objects"),
        ("a", '{"body": "b"}', json_lines("a", "body", None), "no target"),
        ("a.conllu", CONLLU, conllu("a.conllu"), "CoNLL-U"),
        ("a", "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n", conllu("a"), "CoNLL-U"),
        ("a.conll.gz", "a\tO\nb\tO\n\n", conllu("a.conll.gz", 0, 1), "its tag in the last column"),
        ("a", BABI, babi("a"), "bAbI"),
        ("a", "To be,\nor not\n", lines("a"), "plain text"),
    ],
)
def test_the_format_is_inferred(
    name: str,
    text: str,
    expected: SourceSpec,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, name, text, "gzip" if name.endswith(".gz") else "plain")
    opened = open_source(name)
    assert opened.source == expected
    assert reason in opened.reason


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_of_what_is_no_file(size: int) -> None:
    """Standard input arrives in chunks of any size."""
    data = "\ufeffone\r\ntwö\n\nfour".encode()
    chunks = (data[start : start + size] for start in range(0, len(data), size))
    assert list(LineReader("standard input", chunks=chunks)) == ["one", "twö", "", "four"]
    assert list(LineReader("standard input", chunks=iter([b"\xef\xbb", b"\xbf"]))) == []
    with pytest.raises(
        DataError, match=r"^standard input, line 2: byte 1 is 0xff, which is invalid UTF-8"
    ):
        list(LineReader("standard input", chunks=iter([b"one\n", b"\xff"])))


def test_two_files_are_parallel(tmp_path: Path) -> None:
    file = write(tmp_path, "a", "one\n")
    assert open_source(file, file).source == parallel(file, file)

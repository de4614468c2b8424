"""open_source: the format of a file, from its name and its first lines, with a sentence about it."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from .._bytes import read_bytes
from .._example import Where, data_error, quoted
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, expand, path_texts
from ._annotations import (
    CocoCaptions,
    EasyVqa,
    KarpathyCaptions,
    coco_captions,
    easy_vqa,
    karpathy_captions,
)
from ._babi import Babi, babi
from ._conllu import ConllU, conllu
from ._formats import (
    JsonLines,
    Parallel,
    PlainLines,
    TabSeparated,
    json_lines,
    lines,
    parallel,
    parse_record,
    tsv,
)
from ._image_lists import ImageFolders, ImageList, image_folders, image_list
from ._regex_lines import RegexLines

ImageSourceSpec = ImageList | ImageFolders | KarpathyCaptions | CocoCaptions | EasyVqa
SourceSpec = (
    TabSeparated | JsonLines | Parallel | ConllU | Babi | RegexLines | PlainLines | ImageSourceSpec
)

NUM_PEEKED = 200  # lines
PEEKED_LINE = 1 << 26  # bytes of a line at most
PEEKED_BYTES = 1 << 16  # of a JSON document
# A first column is taken for labels where each of them is seen so often, in a file of two columns
# whose second hardly repeats itself and is so many times as long. Dictionaries and translations
# repeat a source a few times, forms of one lemma are as long as it is.
MIN_PER_LABEL = 20
TIMES_AS_LONG = 3
MIN_SENTENCE, MAX_SENTENCE = 2, 100  # words on average: fewer or more, and empty lines mean nothing
_MOST_OF_ONE = 0.9  # share of pairs with one label; where it is larger, the column is a note
_SOURCES = (
    *("source", "src", "input", "text", "sentence", "word", "lemma", "body", "x"),
    *("first", "premise", "sentence1", "sentence_a", "text1", "question1"),
)
_SECONDS = ("second", "hypothesis", "sentence2", "sentence_b", "text2", "question2")
_TARGETS = (
    *("target", "tgt", "output", "label", "gold_label", "translation", "pronunciation", "form"),
    *("tags", "answer", "subject", "summary", "entailment_judgment", "y"),
)
_FEATURES = ("features", "feats", "morph")
_ALIGNMENTS = ("alignment", "alignments")
_IS_FEATURES = re.compile(r"[A-Z0-9][^\s;]*(;[^\s;]+)*").fullmatch
_IS_ALIGNMENT = re.compile(r"\d+-\d+( \d+-\d+)*").fullmatch
_IS_IMAGE = re.compile(r"[^\t]+\.(png|jpe?g|gif|bmp|webp)(#\d+)?(\t|$)", re.IGNORECASE).match
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


class Opened(NamedTuple):
    """A source, and why it is read as it is."""

    source: SourceSpec
    reason: str


def open_source(paths: Paths, target: Paths | None = None, *, max_line: int = MAX_LINE) -> Opened:
    """The source that files are, from the name and the first lines of the first of them.

    Args:
        paths: a file, a pattern, or several of them.
        target: files whose lines go with those of `paths`, if there are such.
        max_line: bytes of a line at most.
    """
    if target is not None:
        both = parallel(paths, target, max_line=max_line)
        return Opened(both, "two files whose lines go together")
    first = expand(path_texts(paths))[0]
    if Path(first).is_dir():
        _refuse_texts(Path(first))
        return Opened(image_folders(paths), "folders of images, named after what is on them")
    if annotated := _as_annotations(first, paths):
        return annotated
    # Only reading, not guessing the format, refuses a line that is too long: its limit may be raised later.
    reader = LineReader(first, max_line=max(max_line, PEEKED_LINE))
    begins = [(line, reader.where) for line in islice(reader, NUM_PEEKED)]
    peeked = [(line, where) for line, where in begins if line.strip()]
    if not peeked:
        raise data_error(
            Where(first, 1),
            "the file is empty, expected examples",
            "Give a file with a source, a tab and a target on each line",
        )
    if _are_tagged_words([line for line, _ in begins]):
        source, reason = _as_tagged_words([line for line, _ in peeked], paths)
    else:
        source, reason = _recognized([line for line, _ in peeked], peeked[0][1], paths)
    assert isinstance(source, FileSource)
    return Opened(replace(source, max_line=max_line), reason)


def _refuse_texts(folder: Path) -> None:
    """Raise `DataError` if a folder has files and no folders in it: then these are no folders of images."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    if names and not any(path.is_dir() for path in folder.iterdir()):
        raise data_error(
            str(folder),
            f"this is a folder with {len(names)} files ({names[0]}, for example), expected files, or a folder "
            f"with a folder of images for each label",
            f"Name the files, by a pattern in quotes: '{folder / ('*' + Path(names[0]).suffix)}'",
        )


def _recognized(peeked: Sequence[str], where: Where, paths: Paths) -> Opened:
    name = Path(where.file.removesuffix(".gz").removesuffix(".zst")).suffix.lower()
    if name in (".jsonl", ".ndjson") or all(line.startswith("{") for line in peeked):
        return _as_json(peeked[0], where, paths)
    if name == ".conllu" or _most(peeked, lambda line: re.match(r"#|\d+\t([^\t]*\t){8}", line)):
        return Opened(conllu(paths), "CoNLL-U: words and their universal part-of-speech tags")
    if name in (".conll", ".iob", ".bio"):
        return _as_tagged_words(peeked, paths)
    if peeked[0].startswith("1 ") and all(re.match(r"\d+ \S", line) for line in peeked):
        return Opened(babi(paths), "bAbI: numbered facts, questions and answers")
    if _most(peeked, lambda line: _IS_IMAGE(line) is not None):
        return _as_image_list(peeked, paths)
    if name == ".tsv" or _most(peeked, lambda line: "\t" in line):
        return _as_tsv(peeked, paths)
    if name == ".csv":
        raise data_error(
            where,
            "commas between columns, expected tabs",
            "Save it as tab-separated text",
        )
    return Opened(lines(paths), "plain text without tabs: each line is a text without a target")


def _are_tagged_words(lines: Sequence[str]) -> bool:
    """Whether lines are words with their tags and empty lines between sentences, whatever the name of the
    file: as many columns on each line, no space in a word or a tag, few different tags.
    """
    rows = [line.split("\t") for line in lines if line.strip()]
    num_columns = len(rows[0]) if rows else 0
    sentences = [
        list(group) for is_text, group in groupby(lines, lambda line: bool(line.strip())) if is_text
    ]
    mean_length = len(rows) / max(1, len(sentences))
    return (
        len(sentences) > 1
        and MIN_SENTENCE <= mean_length <= MAX_SENTENCE
        and num_columns > 1
        and all(len(row) == num_columns for row in rows)
        and not any(" " in cell.strip() for row in rows for cell in (row[0], row[-1]))
        and 2 * len({row[-1] for row in rows}) <= len(rows)
        and not rows[0][0].isdecimal()  # CoNLL-U numbers its words
    )


def _as_tagged_words(peeked: Sequence[str], paths: Paths) -> Opened:
    last = Counter(line.count("\t") for line in peeked).most_common(1)[0][0]
    return Opened(
        conllu(paths, source=0, target=last),
        "a word on each line, its tag in the last column, an empty line after each sentence",
    )


def _as_annotations(file: str, paths: Paths) -> Opened | None:
    """The captions or questions of a JSON document; None where the file is none."""
    if not file.removesuffix(".gz").removesuffix(".zst").endswith(".json"):
        return None
    begins = b"".join(islice(read_bytes(file), 1))[:PEEKED_BYTES].decode("utf-8", "replace")
    if re.match(r"\s*\[\s*\[", begins):
        return Opened(easy_vqa(paths), "questions about images, as in easy-VQA")
    if '"sentences"' in begins or '"sentids"' in begins:
        return Opened(
            karpathy_captions(paths),
            "captions in Karpathy's format, of the images for training",
        )
    if '"file_name"' in begins or '"image_id"' in begins:
        return Opened(coco_captions(paths), "captions in the format of COCO")
    return None


def _as_image_list(peeked: Sequence[str], paths: Paths) -> Opened:
    columns = min(len(line.split("\t")) for line in peeked)
    numbered = all(re.match(r"[^\t]*#\d+\t", line) for line in peeked)
    target, second = (None, None) if columns == 1 else (1, None) if columns == 2 else (2, 1)
    opened = image_list(paths, target=target, second=second, numbered=numbered)
    about = {None: "no text", 1: "a text in the second", 2: "a question and an answer after it"}
    return Opened(opened, f"names of images in the first column, {about[target]}")


def _as_json(line: str, where: Where, paths: Paths) -> Opened:
    record = parse_record(line, where)
    texts = [name for name, value in record.items() if isinstance(value, str | list)]
    source = _named(record, _SOURCES) or next(iter(texts), None)
    if source is None:
        raise data_error(
            where,
            f"no text in the object {quoted(line)}",
            'Write {"source": ..., "target": ...} on each line',
        )
    others = [name for name in texts if name != source]
    target = _named(record, _TARGETS) or next(iter(others), None)
    second = _named(record, _SECONDS)
    if second == target:  # the one other text of the object: what to make of the first
        second = None
    opened = json_lines(
        paths,
        source=source,
        target=target,
        second=second,
        features=_named(record, _FEATURES),
        alignment=_named(record, _ALIGNMENTS),
    )
    about = "no target" if target is None else f"the target in {target!r}"
    texts_in = (
        f"the text in {source!r}" if second is None else f"texts in {source!r} and {second!r}"
    )
    return Opened(opened, f"JSON objects: {texts_in}, {about}")


def _as_tsv(peeked: Sequence[str], paths: Paths) -> Opened:
    rows = [line.split("\t") for line in peeked]
    num_columns, how_often = Counter(map(len, rows)).most_common(1)[0]
    found = _by_header(rows[0]) if len(rows) > 1 else None
    header = found is not None
    whole = [row for row in rows if len(row) == num_columns]
    is_labelled = not header and _has_labels_first(whole)
    found = found or _as_pairs(whole) or _by_content(whole, num_columns)
    if is_labelled:
        found |= {"source": 1, "target": 0}
    columns = num_columns if num_columns > 1 and how_often >= 0.9 * len(rows) else None
    opened = tsv(paths, **found, columns=columns, header=header)
    words = [
        f"{'second text' if what == 'second' else what} in the {_ordinal(column)}"
        for what, column in (("text", found["source"]), *found.items())
        if column is not None and what != "source"
    ]
    named = ", named in the first line" if header else ""
    reason = f"tab-separated, {num_columns} columns{named}: {', '.join(words)}{_unused(found, num_columns)}"
    if is_labelled:
        num_labels = len({row[0] for row in whole})
        reason = (
            f"tab-separated, 2 columns: label in the first ({num_labels} different in {len(whole)} "
            f"lines), text in the second; a first line with the names source and target, and a tab "
            f"between them, would say otherwise"
        )
    return Opened(opened, reason)


def _unused(found: Mapping[str, int | None], num_columns: int) -> str:
    """Which columns are not read, and how to read one of them."""
    unused = [column for column in range(num_columns) if column not in found.values()]
    if not unused or num_columns < 3:
        return ""
    names = " and ".join(map(_ordinal, unused))
    return (
        f"; ignored: the {names} (to predict it instead: --set train.target={unused[0]}; columns are "
        f"counted from 0)"
    )


def _has_labels_first(rows: Sequence[Sequence[str]]) -> bool:
    """Whether this is a label and a text on each line, rather than a text and what to make of it."""
    if not rows or len(rows[0]) != 2:
        return False
    labels, texts = ([row[column].strip() for row in rows] for column in (0, 1))
    return (
        _are_labels_of(labels, texts)
        and not any(map(_IS_ALIGNMENT, texts))
        and not _are_features(texts)
    )


def _are_labels_of(labels: Sequence[str], texts: Sequence[str]) -> bool:
    """Few different and short beside texts that hardly repeat themselves."""
    return (
        len(set(labels)) * MIN_PER_LABEL <= len(labels)
        and 2 * len(set(texts)) > len(texts)
        and sum(map(len, texts)) >= TIMES_AS_LONG * sum(map(len, labels)) > 0
    )


def _as_pairs(rows: Sequence[Sequence[str]]) -> dict[str, Any] | None:
    """Two texts and a label on each line, the label last or first; None where it is not so. The texts
    are of one kind: a text with its translation, and a note on either, would be too, were the note
    not seldom the same, or hardly ever another.
    """
    if not rows or len(rows[0]) != 3:
        return None
    columns = [[row[column].strip() for row in rows] for column in range(3)]
    for target, source, second in ((2, 0, 1), (0, 1, 2)):
        both = [
            f"{first}\t{other}"
            for first, other in zip(columns[source], columns[second], strict=True)
        ]
        spaced = all(
            _most(columns[column], lambda cell: " " in cell) for column in (source, second)
        )
        commonest = max(Counter(columns[target]).values())
        is_told = commonest <= _MOST_OF_ONE * len(rows)
        if spaced and is_told and _are_labels_of(columns[target], both):
            return {"source": source, "second": second, "target": target}
    return None


def _by_header(row: Sequence[str]) -> dict[str, Any] | None:
    names = {cell.strip().lower(): number for number, cell in reversed(list(enumerate(row)))}
    source, target = _named(names, _SOURCES), _named(names, _TARGETS)
    if source is None or target is None:
        return None
    features, alignment = _named(names, _FEATURES), _named(names, _ALIGNMENTS)
    second = _named(names, _SECONDS)
    return {
        "source": names[source],
        "second": None if second is None else names[second],
        "target": names[target],
        "features": None if features is None else names[features],
        "alignment": None if alignment is None else names[alignment],
    }


def _by_content(rows: Sequence[Sequence[str]], num_columns: int) -> dict[str, Any]:
    columns = list(zip(*rows, strict=True))
    features = next((n for n in range(1, num_columns) if _are_features(columns[n])), None)
    rest = [n for n in range(1, num_columns) if n != features]
    alignment = next((n for n in rest[1:] if all(map(_IS_ALIGNMENT, columns[n]))), None)
    # A file without the forms to find has a lemma and its features only.
    target = rest[0] if rest else (None if features is not None else 1)
    return {"source": 0, "target": target, "features": features, "alignment": alignment}


def _are_features(cells: Sequence[str]) -> bool:
    """V;IND;PST and the like: without spaces, most with a semicolon."""
    return all(map(_IS_FEATURES, cells)) and _most(cells, lambda cell: ";" in cell)


def _most(items: Sequence[str], holds: Callable[[str], Any]) -> bool:
    return sum(map(bool, map(holds, items))) > len(items) / 2


def _named(known: dict[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in known), None)


def _ordinal(column: int) -> str:
    return _ORDINALS[column] if column < len(_ORDINALS) else f"column {column + 1}"

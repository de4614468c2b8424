"""open_source: infer the format of a file from its name and its first lines, with a reason."""

import csv as standard_csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from .._bytes import read_bytes
from .._example import Where, data_error, quoted
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, expand, path_texts
from .._source_spec import AbstractSourceSpec
from ._annotations import (
    CocoCaptions,
    EasyVqa,
    KarpathyCaptions,
    coco_captions,
    easy_vqa,
    karpathy_captions,
)
from ._audio_lists import AudioList, audio_list
from ._babi import Babi, babi
from ._columns import (
    ALIGNMENTS,
    FEATURES,
    SECONDS,
    SOURCES,
    TARGETS,
    find_columns,
    first_known,
    most,
)
from ._conllu import ConllU, conllu
from ._dialogs import RESPONSE, TURNS, Dialogs, dialogs, turns_of
from ._formats import (
    JsonLines,
    Parallel,
    PlainLines,
    json_lines,
    lines,
    parallel,
    parse_record,
)
from ._image_lists import ImageFolders, ImageList, image_folders, image_list
from ._regex_lines import RegexLines
from ._tables import CommaSeparated, TabSeparated, csv, tsv
from ._treebank import Treebank

ImageSourceSpec = ImageList | ImageFolders | KarpathyCaptions | CocoCaptions | EasyVqa
FormatSpec = (  # of files
    TabSeparated
    | CommaSeparated
    | JsonLines
    | Parallel
    | ConllU
    | Treebank
    | Babi
    | Dialogs
    | RegexLines
    | PlainLines
    | ImageSourceSpec
    | AudioList
)
SourceSpec = FormatSpec | AbstractSourceSpec

NUM_PEEKED = 200  # lines
PEEKED_LINE = 1 << 26  # maximum bytes of a line
PEEKED_BYTES = 1 << 16  # maximum bytes of a JSON document to read
ARCHIVE = "images.zip"  # the archive of images next to a list of images
MIN_SENTENCE, MAX_SENTENCE = 2, 100  # mean words between empty lines that separate sentences
_IS_IMAGE = re.compile(r"[^\t]+\.(png|jpe?g|gif|bmp|webp)(#\d+)?(\t|$)", re.IGNORECASE).match

_IS_AUDIO = re.compile(r"[^\t]+\.(wav|flac|ogg)(\t|$)", re.IGNORECASE).match


class Opened(NamedTuple):
    """A source, and the reason for its format."""

    source: SourceSpec
    reason: str


def open_source(paths: Paths, target: Paths | None = None, *, max_line: int = MAX_LINE) -> Opened:
    """Open files as a source, inferring the format from the name and the first lines of the first file.

    Args:
        paths: A file, a pattern, or several of them.
        target: Files parallel to `paths`, if there are any.
        max_line: Maximum number of bytes of a line.

    Returns:
        The source, and the reason for its format.

    Raises:
        DataError: The file does not exist or is empty, its JSON or CSV has no text, or a folder contains files other
            than images by label.
    """
    if target is not None:
        both = parallel(paths, target, max_line=max_line)
        return Opened(both, "two parallel files")
    first = expand(path_texts(paths))[0]
    if Path(first).is_dir():
        _refuse_texts(Path(first))
        return Opened(image_folders(paths), "folders of images, one per label")
    if annotated := _as_annotations(first, paths):
        return annotated
    # Only reading rejects a line that is too long, not inferring the format: the user may raise the limit later.
    reader = LineReader(first, max_line=max(max_line, PEEKED_LINE))
    begins = [(line, reader.where) for line in islice(reader, NUM_PEEKED)]
    peeked = [(line, where) for line, where in begins if line.strip()]
    if not peeked:
        raise data_error(
            Where(first, 1),
            "the file is empty, expected examples",
            "Use a file with a source, a tab and a target on each line",
        )
    if _are_tagged_words([line for line, _ in begins]):
        source, reason = _as_tagged_words([line for line, _ in peeked], paths)
    else:
        source, reason = _recognized([line for line, _ in peeked], peeked[0][1], paths)
    assert isinstance(source, FileSource)
    return Opened(replace(source, max_line=max_line), reason)


def _refuse_texts(folder: Path) -> None:
    """Raise `DataError` if a folder contains files but no folders, because it cannot contain images by label."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    if names and not any(path.is_dir() for path in folder.iterdir()):
        raise data_error(
            str(folder),
            f"got a folder with {len(names)} files (for example {names[0]}), expected files, or a "
            f"folder with one folder of images per label",
            f"Use a quoted pattern: '{folder / ('*' + Path(names[0]).suffix)}'",
        )


def _recognized(peeked: Sequence[str], where: Where, paths: Paths) -> Opened:
    name = Path(where.file.removesuffix(".gz").removesuffix(".zst")).suffix.lower()
    if name == ".csv" and not all("\t" in line for line in peeked):
        return _as_csv(peeked, where, paths)
    if name in (".jsonl", ".ndjson") or all(line.startswith("{") for line in peeked):
        if TURNS in parse_record(peeked[0], where):
            return _as_dialogs(peeked, where, paths)
        return _as_json(peeked[0], where, paths)
    if name == ".conllu" or most(peeked, lambda line: re.match(r"#|\d+\t([^\t]*\t){8}", line)):
        return Opened(conllu(paths), "CoNLL-U: words and their universal part-of-speech tags")
    if name in (".conll", ".iob", ".bio"):
        return _as_tagged_words(peeked, paths)
    if peeked[0].startswith("1 ") and all(re.match(r"\d+ \S", line) for line in peeked):
        return Opened(babi(paths), "bAbI: numbered facts, questions and answers")
    if most(peeked, lambda line: _IS_IMAGE(line) is not None):
        return _as_image_list(peeked, paths)
    if most(peeked, lambda line: _IS_AUDIO(line) is not None):
        has_text = all("\t" in line for line in peeked)
        opened = audio_list(paths, target=1 if has_text else None)
        about = "a text in the second" if has_text else "no text"
        return Opened(opened, f"names of recordings in the first column, {about}")
    if name == ".tsv" or most(peeked, lambda line: "\t" in line):
        return _as_tsv(peeked, paths)
    return Opened(lines(paths), "plain text without tabs: each line is a text without a target")


def _are_tagged_words(lines: Sequence[str]) -> bool:
    """Return True if lines contain words with tags, and empty lines between sentences. The name of the file does not
    matter: each line has the same number of columns, words and tags have no spaces, and there are few different tags.
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
    """Open the captions or questions of a JSON document; return None for other files."""
    if not file.removesuffix(".gz").removesuffix(".zst").endswith(".json"):
        return None
    begins = b"".join(islice(read_bytes(file), 1))[:PEEKED_BYTES].decode("utf-8", "replace")
    if re.match(r"\s*\[\s*\[", begins):
        return Opened(easy_vqa(paths), "questions about images, as in easy-VQA")
    if '"sentences"' in begins or '"sentids"' in begins:
        return Opened(
            karpathy_captions(paths),
            "captions in Karpathy's format, training split",
        )
    if '"file_name"' in begins or '"image_id"' in begins:
        return Opened(coco_captions(paths), "captions in the format of COCO")
    return None


def _as_image_list(peeked: Sequence[str], paths: Paths) -> Opened:
    columns = min(len(line.split("\t")) for line in peeked)
    numbered = all(re.match(r"[^\t]*#\d+\t", line) for line in peeked)
    target, second = (None, None) if columns == 1 else (1, None) if columns == 2 else (2, 1)
    folder = Path(expand(path_texts(paths))[0]).parent
    first = folder / peeked[0].partition("\t")[0].partition("#")[0]
    images = folder / ARCHIVE if (folder / ARCHIVE).is_file() and not first.exists() else None
    opened = image_list(paths, images, target=target, second=second, numbered=numbered)
    about = {None: "no text", 1: "a text in the second", 2: "a question and an answer after it"}
    place = "" if images is None else f"; the images are in {images}"
    return Opened(opened, f"names of images in the first column, {about[target]}{place}")


def _as_json(line: str, where: Where, paths: Paths) -> Opened:
    record = parse_record(line, where)
    texts = [name for name, value in record.items() if isinstance(value, str | list)]
    source = first_known(record, SOURCES) or next(iter(texts), None)
    if source is None:
        raise data_error(
            where,
            f"no text in the object {quoted(line)}",
            'Write {"source": ..., "target": ...} on each line',
        )
    others = [name for name in texts if name != source]
    target = first_known(record, TARGETS) or next(iter(others), None)
    second = first_known(record, SECONDS)
    if second == target:  # the only other text of the object is the target
        second = None
    opened = json_lines(
        paths,
        source=source,
        target=target,
        second=second,
        features=first_known(record, FEATURES),
        alignment=first_known(record, ALIGNMENTS),
    )
    about = "no target" if target is None else f"the target in {target!r}"
    texts_in = (
        f"the text in {source!r}" if second is None else f"texts in {source!r} and {second!r}"
    )
    return Opened(opened, f"JSON objects: {texts_in}, {about}")


def _as_dialogs(peeked: Sequence[str], where: Where, paths: Paths) -> Opened:
    """Open dialogs. If all of them end with one speaker, each turn of this speaker is a response."""
    records = [parse_record(line, where) for line in peeked]
    if all(RESPONSE in record for record in records):
        return Opened(dialogs(paths), 'dialogs: turns in "turns", the response in "response"')
    last = {turns_of(record, LineReader(where.file))[-1].speaker for record in records}
    speaker = last.pop() if len(last) == 1 else ""
    if not speaker:
        return Opened(dialogs(paths), "dialogs: the last turn is the response")
    reason = f"dialogs that end with {speaker!r}: each turn of this speaker is a response"
    return Opened(dialogs(paths, speaker=speaker), reason)


def _as_tsv(peeked: Sequence[str], paths: Paths) -> Opened:
    found = find_columns([line.split("\t") for line in peeked])
    columns = found.number if found.is_even else None
    source = tsv(paths, **found.roles, columns=columns, header=found.header)
    return Opened(source, f"tab-separated, {found.reason}")


def _as_csv(peeked: Sequence[str], where: Where, paths: Paths) -> Opened:
    """Open a CSV file. The separator is a comma, unless only semicolons give every row the same number of columns.
    Reading rejects rows of another length than the first, because an unquoted cell may contain a separator.
    """
    by_comma, by_semicolon = (_csv_rows(peeked, delimiter) for delimiter in (",", ";"))
    is_comma = _is_even(by_comma) or not _is_even(by_semicolon)
    delimiter, rows = (",", by_comma) if is_comma else (";", by_semicolon)
    if not rows:
        raise data_error(where, "the file has no rows, expected CSV", "Use a file with examples")
    found = find_columns(rows, is_csv=True)
    source = csv(
        paths, **found.roles, columns=found.number, header=found.header, delimiter=delimiter
    )
    words = "comma-separated" if is_comma else "separated by semicolons"
    return Opened(source, f"{words}, {found.reason}")


def _csv_rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Parse the rows of the first lines; the last of many rows may be incomplete."""
    texts = (f"{line}\n" for line in lines)
    try:
        rows = list(standard_csv.reader(texts, delimiter=delimiter, skipinitialspace=True))
    except standard_csv.Error:  # reading the file raises an error with the line
        rows = [line.split(delimiter) for line in lines]
    rows = [row for row in rows if any(map(str.strip, row))]
    return rows[:-1] if len(rows) > 1 and len(lines) >= NUM_PEEKED // 2 else rows


def _is_even(rows: Sequence[Sequence[str]]) -> bool:
    return len({len(row) for row in rows}) == 1 and len(rows[0]) > 1

"""The lines of a shard, each an example or a reason for its rejection. No line ends the reading."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, TypeAlias, final

from ..data import Example, LineReader, json_lines
from ..data._bytes import DamagedError, Readable, read_handle
from ..data._lines import MAX_LINE, Place
from ..errors import DataError
from ..serving._predictor import Questions
from ._storage import Writable, discard, exists, is_whole, written

# Parses a line to an example; None for a line without one.
Parse: TypeAlias = Callable[[LineReader], Example | None]


class Rejected(NamedTuple):
    """A rejected line, with the reason."""

    line: int  # counted from 1
    reason: str


class Asked(NamedTuple):
    """A line with its example."""

    line: int
    example: Example


@final
class ShardReader:
    """The lines of one file, plain or compressed, with its checksum."""

    def __init__(self, handle: Readable, url: str, parse: Parse) -> None:
        self._handle, self._url = _Hashed(handle), url
        self._parse = parse
        self.num_lines = 0

    @property
    def sha256(self) -> str:
        """The checksum of the bytes on disk."""
        return self._handle.sha256.hexdigest()

    def __iter__(self) -> Iterator[Asked | Rejected]:
        try:
            for number, line in enumerate(raw_lines(self._handle, self._url), start=1):
                self.num_lines = number
                yield self._read(number, line)
        except DamagedError as damage:
            self.num_lines += 1
            yield Rejected(self.num_lines, f"{damage}; this line and all following lines are lost")

    def _read(self, number: int, line: bytes) -> Asked | Rejected:
        # Only the first line of a file, at offset 0, may begin with a byte order mark.
        place = Place(min(1, number - 1), number - 1)
        reader = LineReader(self._url, place, chunks=iter((line,)))
        try:
            example = self._parse(reader)
        except DataError as error:
            return Rejected(number, str(error))
        if example is None:
            return Rejected(number, "not an example: the line is empty, or contains column names")
        return Asked(number, example)


@final
class Rejects:
    """The rejected lines of a shard, written as they come."""

    def __init__(self, open_file: Callable[[], Writable]) -> None:
        self._open, self._file, self._digest = open_file, None, hashlib.sha256()
        self.number = 0

    @property
    def sha256(self) -> str:
        """The checksum of the file; empty if there is none."""
        return self._digest.hexdigest() if self.number else ""

    def add(self, rejected: Rejected) -> None:
        """Write one more line."""
        if self._file is None:
            self._file = self._open()
        content = (json.dumps(rejected._asdict(), ensure_ascii=False) + "\n").encode()
        self._digest.update(content)
        self._file.write(content)
        self.number += 1


def rejects_url(base: str) -> str:
    """Return the URL of the rejects of a shard."""
    return f"{base}.rejects.jsonl"


@contextmanager
def rejecting(base: str) -> Iterator[Rejects]:
    """Open the rejects of a shard, next to its other outputs. The file exists at the end only if a line was rejected;
    the file of an earlier run is deleted.
    """
    with ExitStack() as stack:
        rejects = Rejects(lambda: stack.enter_context(written(rejects_url(base))))
        yield rejects
    if not rejects.number:
        discard(rejects_url(base))


def are_whole(base: str, sha256: str) -> bool:
    """Return whether the rejects of a shard have this checksum; empty: there are none."""
    return is_whole(rejects_url(base), None, sha256) if sha256 else not exists(rejects_url(base))


class _Hashed:
    """A file that computes a checksum of its bytes while they are read. It can seek only to the beginning, after the
    few bytes that identify the compression.
    """

    def __init__(self, handle: Readable) -> None:
        self._handle, self.sha256 = handle, hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        content = self._handle.read(size)
        self.sha256.update(content)
        return content

    def seek(self, offset: int, /) -> int:
        """Return to the beginning."""
        assert offset == 0
        self.sha256 = hashlib.sha256()
        return self._handle.seek(offset)


def raw_lines(handle: Readable, url: str) -> Iterator[bytes]:
    """Yield lines without line endings. A line that is too long is cut just above the limit."""
    rest = b""
    for chunk in read_handle(handle, url):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        rest = rest[: MAX_LINE + 2]
    if rest:
        yield rest


def question_parser(url: str, questions: Questions, text: str) -> Parse:
    """Return the parser for the lines of an input file; `text` names the input field in JSON lines."""
    return _json_reader(questions, text) if _is_json(url) else _text_reader(questions)


def _is_json(url: str) -> bool:
    name = url.removesuffix(".gz").removesuffix(".zst")
    return name.endswith((".jsonl", ".ndjson"))


def _json_reader(questions: Questions, text: str) -> Parse:
    format_ = json_lines(
        (),
        source=text,
        target=None,
        second="second" if questions.is_pair else None,
        features="features" if questions.has_features else None,
    )
    return lambda reader: next(format_.examples([reader]), None)


def _text_reader(questions: Questions) -> Parse:
    def read(reader: LineReader) -> Example | None:
        line = next(iter(reader), "")
        return questions.example(line) if line.strip() else None

    return read

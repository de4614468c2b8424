"""Read the lines of a text file from any position. Errors name the line.

A line ends in LF or CR LF. A byte order mark is skipped. Invalid UTF-8, NUL, a lone CR and lines longer than the limit
raise an error, after all preceding lines have been read.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..errors import DataError
from ._bytes import DamagedError, is_packed, read_bytes
from ._example import Where, data_error

_MARK = b"\xef\xbb\xbf"  # the byte order mark
_AGAIN = "Download or compress the file again"
MAX_LINE = 1 << 20  # bytes


class Place(NamedTuple):
    """The beginning of a line: the numbers of decompressed bytes and of lines before it."""

    offset: int = 0
    line: int = 0


class LineReader:
    """Iterates over the lines of a file once, and tracks its position.

    Args:
        file: File to read: plain, gzip or zstd. With `chunks`, `file` is only the name for error messages.
        place: Beginning of the first line to read; by default the beginning of the file.
        end: Number of decompressed bytes at which to stop; None reads to the end of the file.
        max_line: Maximum number of bytes of a line.
        chunks: Bytes to read instead of the file.
    """

    def __init__(
        self,
        file: str,
        place: Place = Place(),  # noqa: B008 - a tuple
        end: int | None = None,
        *,
        max_line: int = MAX_LINE,
        chunks: Iterator[bytes] | None = None,
    ) -> None:
        self.file = file
        self.line = place.line  # the number of the last line read
        self.max_line = max_line
        self._bytes = read_bytes(file, place.offset, end) if chunks is None else chunks
        self._offset = place.offset  # offset of the block
        self._block, self._block_line = b"", place.line
        self.held: Place | None = None  # the position to restart from, if not the next line
        self.num_since = 0  # examples read since that position

    def __iter__(self) -> Iterator[str]:
        for whole in self._blocks():
            has_mark = not self._offset and whole.startswith(_MARK)
            block = whole[len(_MARK) :] if has_mark else whole
            self._offset += len(whole) - len(block)
            if not block:
                continue
            self._block, self._block_line = block, self.line
            text = _decoded(block, self.max_line)
            lines = self._one_by_one(block) if text is None else text.split("\n")
            for line in lines:
                self.line += 1
                yield line
            self._offset += len(block)
            self._block, self._block_line = b"", self.line

    @property
    def where(self) -> Where:
        """Return the location of the last line read."""
        return Where(self.file, self.line)

    def place(self, back: int = 0) -> Place:
        """Return the beginning of the next line, or with `back=1` of the last line read.

        Args:
            back: Number of lines to go back: 0 for the next line, 1 for the last line read.

        Returns:
            The beginning of that line.
        """
        done = self.line - back - self._block_line
        rest = self._block.split(b"\n", done)
        offset = len(self._block) - len(rest[done]) if done < len(rest) else len(self._block)
        return Place(self._offset + offset, self.line - back)

    def hold(self) -> None:
        """Mark the last line read as the restart position, because the following lines depend on it."""
        self.held, self.num_since = self.place(back=1), 0

    def error(self, what: str, remedy: str) -> DataError:
        """Create an error about the last line read.

        Args:
            what: The problem.
            remedy: The advice to the user.

        Returns:
            The error, with the file and the number of the line.
        """
        return data_error(self.where, what, remedy)

    def _chunks(self) -> Iterator[bytes]:
        try:
            yield from self._bytes
        except DamagedError as damage:
            raise data_error(Where(self.file, self.line + 1), str(damage), _AGAIN) from None

    def _blocks(self) -> Iterator[bytes]:
        """Yield blocks of bytes that end with a line, or with the file."""
        rest = b""
        for chunk in self._chunks():
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield rest + chunk[:cut]
                rest = chunk[cut:]
            else:
                rest += chunk
            if len(rest) > self.max_line + 1:  # one for CR
                break
        if rest:
            yield rest

    def _one_by_one(self, block: bytes) -> Iterator[str]:
        """Yield the lines of an invalid block up to the first invalid line."""
        for line in block.removesuffix(b"\n").split(b"\n"):
            where = Where(self.file, self.line + 1)
            yield _checked(line.removesuffix(b"\r"), where, self.max_line)


def _decoded(block: bytes, max_line: int) -> str | None:
    """Decode a block without its last line break; return None if it may contain an error."""
    if b"\0" in block:
        return None
    if b"\r" in block:
        if block.count(b"\r") != block.count(b"\r\n") + block.endswith(b"\r"):
            return None
        block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
    block = block.removesuffix(b"\n")
    if len(block) > max_line and max(map(len, block.split(b"\n"))) > max_line:
        return None
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _checked(line: bytes, where: Where, max_line: int) -> str:
    """Decode a line, or raise an error that describes the problem."""
    if len(line) > max_line:
        raise data_error(
            where,
            f"the line is longer than {max_line:,} bytes",
            "Split it into shorter lines, or increase max_line (with foveal fit: --set train.max_line=BYTES)",
        )
    if b"\0" in line:
        raise data_error(
            where,
            f"found a NUL at byte {line.index(0) + 1}, expected text",
            "Remove it: tr -d '\\000'",
        )
    if b"\r" in line:
        raise data_error(
            where,
            f"found a lone CR at byte {line.index(13) + 1}, expected LF or CR LF after a line",
            "Convert it to a line break: tr '\\r' '\\n'",
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise data_error(
            where,
            f"byte {error.start + 1} is {line[error.start]:#04x}, which is invalid UTF-8",
            "Save the file as UTF-8: iconv -f LATIN1 -t UTF-8, if it is Latin-1",
        ) from None


def places_of_lines(file: str, lines: list[int]) -> list[Place]:
    """Return the beginnings of lines, given the number of lines before each, in ascending order."""
    places: list[Place] = []
    offset = before = 0
    for chunk in read_bytes(file):
        there = before + chunk.count(b"\n")
        while len(places) < len(lines) and lines[len(places)] <= there:
            done = lines[len(places)] - before
            cut = len(chunk) - len(chunk.split(b"\n", done)[done])
            places.append(Place(offset + cut, lines[len(places)]))
        offset, before = offset + len(chunk), there
    return places


def num_lines(file: str, most: int) -> int:
    """Count the lines of a file up to about `most`, without splitting or decoding them: a hundred times faster than
    reading them.

    Args:
        file: File to read: plain, gzip or zstd.
        most: The count stops when it reaches this number.

    Returns:
        The number of lines, empty lines included.

    Raises:
        DataError: The compressed data is damaged.
    """
    number, last = 0, b"\n"
    try:
        for chunk in read_bytes(file):
            number, last = number + chunk.count(b"\n"), chunk[-1:]
            if number >= most:
                return number
    except DamagedError as damage:
        raise data_error(Where(file, number + 1), str(damage), _AGAIN) from None
    return number + (last != b"\n")


def places_every(file: str, size: int) -> list[Place]:
    """Return beginnings of lines about `size` bytes apart, starting with the first line. For a compressed file, return
    only the first line, because seeking in it is not faster than reading it.
    """
    places = [Place()]
    if is_packed(file):
        return places
    offset = line = 0
    for chunk in read_bytes(file):
        cut = chunk.rfind(b"\n") + 1
        if cut and offset + cut >= places[-1].offset + size:
            places.append(Place(offset + cut, line + chunk.count(b"\n")))
        offset, line = offset + len(chunk), line + chunk.count(b"\n")
    return places[:-1] if len(places) > 1 and places[-1].offset == offset else places

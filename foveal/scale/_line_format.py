"""Detection of the format of text files, on a disk or at a URL, from their first lines."""

import posixpath
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..data import JsonLines, TabSeparated, open_source
from ..data.formats._formats import PlainLines
from ..errors import DataError
from ._lines import raw_lines
from ._storage import Shard, opened

LineSourceSpec = TabSeparated | JsonLines | PlainLines
_PEEKED = 1000  # lines: more than open_source needs


class LineFormat(NamedTuple):
    """A line parser without any paths, and the reason for choosing it."""

    like: LineSourceSpec
    reason: str


def line_format(shard: Shard) -> LineFormat:
    """Detect the format of a file with one example on each line."""
    name = posixpath.basename(shard.url).removesuffix(".gz").removesuffix(".zst")
    with TemporaryDirectory() as folder, opened(shard.url) as handle:
        file = Path(folder) / name
        lines = islice(raw_lines(handle, shard.url), _PEEKED)
        file.write_bytes(b"".join(line + b"\n" for line in lines if _is_text(line)))
        try:
            source, reason = open_source(file)
            if isinstance(source, TabSeparated) and source.is_named:  # lines are parsed one by one
                header = source.first_row(str(file))
                source = replace(source, **source.numbers(header, str(file)))
        except DataError as error:
            raise DataError(str(error).replace(str(file), shard.url)) from None
    if not isinstance(source, LineSourceSpec):
        raise DataError(
            f"{shard.url}: {reason}, expected one example per line. Convert it to tab-separated text "
            f"or JSON lines."
        )
    return LineFormat(replace(source, paths=()), reason)


def _is_text(line: bytes) -> bool:
    """Return whether a line helps to detect the format; a broken line is rejected later, with its reason."""
    try:
        return bool(line.decode().strip())
    except UnicodeDecodeError:
        return False

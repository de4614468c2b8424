"""How the lines of text files are read, found out from the first of them, wherever it lies."""

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
_PEEKED = 1000  # lines: more than open_source looks at


class LineFormat(NamedTuple):
    """What reads lines, without any paths; and why it is the one."""

    like: LineSourceSpec
    reason: str


def line_format(shard: Shard) -> LineFormat:
    """The format of a file of which every line is an example."""
    name = posixpath.basename(shard.url).removesuffix(".gz").removesuffix(".zst")
    with TemporaryDirectory() as folder, opened(shard.url) as handle:
        file = Path(folder) / name
        lines = islice(raw_lines(handle, shard.url), _PEEKED)
        file.write_bytes(b"".join(line + b"\n" for line in lines if _is_text(line)))
        try:
            source, reason = open_source(file)
            if isinstance(source, TabSeparated) and source.is_named:  # lines are read one by one
                header = source.first_row(str(file))
                source = replace(source, **source.numbers(header, str(file)))
        except DataError as error:
            raise DataError(str(error).replace(str(file), shard.url)) from None
    if not isinstance(source, LineSourceSpec):
        raise DataError(
            f"{shard.url}: {reason}, expected an example on each line. Write it as tab-separated text or as "
            f"JSON lines."
        )
    return LineFormat(replace(source, paths=()), reason)


def _is_text(line: bytes) -> bool:
    """Whether it says something of the format; a broken line is rejected later, with its reason."""
    try:
        return bool(line.decode().strip())
    except UnicodeDecodeError:
        return False

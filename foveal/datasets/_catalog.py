"""The catalog: every public data set that recipes, examples and benchmarks read, with a checksum for each file.

`scripts/make_catalog.py` writes `catalog.json`.
"""

import hashlib
import json
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from ..errors import DataError
from ._contents import content_digest
from ._folder import data_folder

_PATH = Path(__file__).with_name("catalog.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFile:
    """A file of a data set."""

    path: str  # below the folder of the data set
    size: int  # bytes; of a gzip file, uncompressed
    sha256: str  # checksum of the contents; see `content_digest`
    # The path at the source: a file, a folder to pack ("a/b/"), or a member of an archive ("a.zip:b.txt").
    upstream: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """A public data set: its source, its license and its files."""

    name: str
    about: str
    source: str  # an address, or the name of a package
    revision: str | None  # a git commit of the source
    license: str
    citation: str
    files: tuple[DataFile, ...]
    by_hand: str | None = None  # instructions for files that cannot be downloaded one by one
    files_at: str | None = None  # the address to which the upstream path of a file is appended

    @property
    def size(self) -> int:
        """The total size of all files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def sha256(self) -> str:
        """One checksum for all files: the sha256 of the lines "sha256  path"."""
        lines = "".join(f"{file.sha256}  {file.path}\n" for file in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()

    @property
    def folder(self) -> Path:
        """The folder of the data set in the data folder."""
        return data_folder() / self.name

    def missing(self) -> tuple[DataFile, ...]:
        """Return the files that are not in the data folder."""
        return tuple(file for file in self.files if not (self.folder / file.path).exists())

    def changed(self) -> tuple[DataFile, ...]:
        """Return the files in the data folder whose checksum differs from the catalog."""
        there = (file for file in self.files if (self.folder / file.path).exists())
        return tuple(f for f in there if content_digest(self.folder / f.path) != f.sha256)


@cache
def catalog() -> dict[str, DataSet]:
    """Return all data sets by name.

    Returns:
        Each data set with its source, license and files.

    Examples:
        >>> catalog()["scan"].license
        'BSD'
    """
    rows = json.loads(_PATH.read_text(encoding="utf-8"))
    return {
        row["name"]: DataSet(**row | {"files": tuple(DataFile(**file) for file in row["files"])})
        for row in rows
    }


def data_set(name: str) -> DataSet:
    """Return a data set by name."""
    known = catalog()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        advice = f"Did you mean {near[0]}?" if near else "`foveal data` lists all data sets."
        raise DataError(f"unknown data set {name!r}. {advice}")
    return known[name]

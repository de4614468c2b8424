"""Atomic writes of files on a disk, or on any fsspec file system (s3://, gs://, memory://)."""

import hashlib
import json
import os
import posixpath
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol, runtime_checkable

import fsspec
from fsspec.implementations.local import LocalFileSystem

from ..data._bytes import Readable
from ..errors import DataError

_PART = ".part-"  # a file in progress, which is not valid yet
_OWNER = re.compile(rf"{re.escape(_PART)}(?P<host>[^/]*)-(?P<process>\d+)-[0-9a-f]{{12}}$")
# Seconds since the last write after which such a file counts as abandoned: for a process of this machine that
# has ended, and for an unknown process.
_ENDED, _FORGOTTEN = 60, 86_400
_BLOCK = 1 << 20  # bytes to read at a time


@runtime_checkable
class Writable(Protocol):
    """A writable file on any file system."""

    def write(self, content: bytes, /) -> int:
        """Write more bytes."""
        ...


class Shard(NamedTuple):
    """An input file."""

    url: str
    name: str  # name of its output files, without a suffix
    key: str  # changes with the file


def find_shards(
    patterns: Sequence[str],
    *,
    out: str | None = None,
    is_reserved: Callable[[str], bool] = lambda name: False,
) -> list[Shard]:
    """Find the files that match paths, URLs and patterns. Each shard is named by its path below the common folder.

    Args:
        patterns: Paths, URLs or patterns.
        out: The output folder, which may contain no input: the next run would read the output.
        is_reserved: Returns whether the run itself writes a file of this name.

    Returns:
        The shards, sorted by path.

    Raises:
        DataError: A pattern matches no file, an input is in the output folder, or two results would have the same name.
    """
    urls = sorted({url for pattern in patterns for url in _matches(pattern)})
    if out is not None:
        _check_outside(urls, out)
    folders = {posixpath.dirname(url) for url in urls}
    common = posixpath.commonpath(folders) if len(folders) > 1 else next(iter(folders))
    shards = [Shard(url, _stem(posixpath.relpath(url, common)), _key(url)) for url in urls]
    by_name = dict[str, Shard]()
    for shard in shards:
        if is_reserved(shard.name):
            raise DataError(
                f"{shard.url}: its output would be {shard.name}.json, which the run itself writes. "
                f"Rename the file."
            )
        if shard.name in by_name:
            raise DataError(
                f"{by_name[shard.name].url} and {shard.url}: both outputs would be {shard.name}, "
                f"expected different names. Rename one of them."
            )
        by_name[shard.name] = shard
    return shards


def size_of(url: str) -> int | None:
    """Return the size of a file in bytes; None if it does not exist."""
    system, path = _located(url)
    try:
        return int(system.size(path))
    except (FileNotFoundError, TypeError):
        return None


def exists(url: str) -> bool:
    """Return whether a file exists."""
    system, path = _located(url)
    return bool(system.exists(path))


def is_whole(url: str, size: int | None, sha256: str) -> bool:
    """Return whether a file exists with this size (None: any) and checksum. The checksum is compared only on local
    disks, because reading from other file systems takes long.
    """
    system, _ = _located(url)
    if size_of(url) is None or size not in (None, size_of(url)):
        return False
    if not isinstance(system, LocalFileSystem):
        return True
    digest = hashlib.sha256()
    with opened(url) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest() == sha256


@contextmanager
def opened(url: str) -> Iterator[Readable]:
    """Open a file for reading."""
    system, path = _located(url)
    with system.open(path, "rb") as file:
        yield file


def discard(url: str) -> None:
    """Delete a file, if it exists."""
    system, path = _located(url)
    if system.exists(path):
        system.rm(path)


def read_json(url: str) -> Any:
    """Read a JSON file; returns None if it does not exist or is invalid."""
    system, path = _located(url)
    try:
        return json.loads(system.cat_file(path))
    except (FileNotFoundError, ValueError):
        return None


def write_json(url: str, data: Any) -> None:
    """Write a JSON file atomically."""
    with written(url) as file:
        file.write((json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


@contextmanager
def written(url: str) -> Iterator[Writable]:
    """Open a file for writing, which appears under its name only when it is complete."""
    system, path = _located(url)
    system.makedirs(posixpath.dirname(path), exist_ok=True)
    part = f"{path}{_PART}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
    try:
        with system.open(part, "wb") as file:
            yield file
        system.mv(part, path)
    except BaseException:
        if system.exists(part):
            system.rm(part)
        raise


def clear_unfinished(out: str) -> None:
    """Delete the incomplete files of killed runs; files that another run is writing are kept."""
    system, path = _located(out)
    for part in system.glob(f"{path.rstrip('/')}/**/*{_PART}*"):
        with suppress(FileNotFoundError, NotImplementedError):
            age = time.time() - system.modified(part).timestamp()
            if age > (_ENDED if _has_ended(part) else _FORGOTTEN):
                system.rm(part)


def _has_ended(part: str) -> bool:
    """Return whether the process that wrote a file ran on this machine and has ended."""
    owner = _OWNER.search(part)
    if owner is None or owner["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(owner["process"]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it exists, and belongs to another user
        pass
    return False


def _located(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it. In a local path, `::` is part of a name; elsewhere
    fsspec parses it as a chain of URLs.
    """
    if "::" in url and ("://" not in url or url.startswith("file://")):
        return LocalFileSystem(), LocalFileSystem._strip_protocol(url)
    return fsspec.core.url_to_fs(url)


def _check_outside(urls: Sequence[str], out: str) -> None:
    system, path = _located(out)
    folder = f"{system.unstrip_protocol(path).rstrip('/')}/"
    for url in urls:
        if url.startswith(folder):
            raise DataError(
                f"{url}: the input is in the output folder {out}, expected inputs in another folder: "
                f"the next run would read answers as inputs. Use another --out."
            )


def _matches(pattern: str) -> list[str]:
    system, path = _located(pattern)
    found = [path] if system.isfile(path) else sorted(system.glob(path))
    files = [system.unstrip_protocol(one) for one in found if system.isfile(one)]
    if not files:
        raise DataError(f"{pattern}: no file matches this pattern. Correct the pattern.")
    return files


def _stem(name: str) -> str:
    """Strip the suffixes of format and compression: `a/b.jsonl.zst` becomes `a/b`. A `::` in an output name would
    make it a chain of URLs.
    """
    for suffix in (".gz", ".zst"):
        name = name.removesuffix(suffix)
    return posixpath.splitext(name)[0].replace("::", "%3A%3A")


def _key(url: str) -> str:
    system, path = _located(url)
    return str(system.ukey(path))

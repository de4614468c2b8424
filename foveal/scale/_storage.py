"""Files on a disk, or wherever fsspec reaches (s3://, gs://, memory://), written whole or not at all."""

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

_PART = ".part-"  # what is being written, and counts for nothing
_OWNER = re.compile(rf"{re.escape(_PART)}(?P<host>[^/]*)-(?P<process>\d+)-[0-9a-f]{{12}}$")
# Seconds since it was last written to, after which nobody writes such a file any more: if its process has ended
# on this machine, and if nothing is known of its process.
_ENDED, _FORGOTTEN = 60, 86_400
_BLOCK = 1 << 20  # bytes that are read at a time


@runtime_checkable
class Writable(Protocol):
    """A file that is open to be written, wherever it is."""

    def write(self, content: bytes, /) -> int:
        """Some more."""
        ...


class Shard(NamedTuple):
    """A file of the input."""

    url: str
    name: str  # of what is written for it, without a suffix
    key: str  # another when the file has changed


def find_shards(
    patterns: Sequence[str],
    *,
    out: str | None = None,
    is_reserved: Callable[[str], bool] = lambda name: False,
) -> list[Shard]:
    """The files that paths, URLs and patterns name, each with a name of its own: its path below the
    folder that all have in common.

    Args:
        patterns: paths, URLs, or patterns of them.
        out: the folder of the output, in which no input may be: the next run would read the output.
        is_reserved: whether a name is that of a file that the run itself writes.
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
                f"{shard.url}: what comes of it would be called {shard.name}.json, which the run writes "
                f"itself. Rename the file."
            )
        if shard.name in by_name:
            raise DataError(
                f"{by_name[shard.name].url} and {shard.url}: what comes of either would be called "
                f"{shard.name}, expected names that differ. Rename one of them."
            )
        by_name[shard.name] = shard
    return shards


def size_of(url: str) -> int | None:
    """Bytes of a file, None where there is none."""
    system, path = _located(url)
    try:
        return int(system.size(path))
    except (FileNotFoundError, TypeError):
        return None


def exists(url: str) -> bool:
    """Whether a file is there."""
    system, path = _located(url)
    return bool(system.exists(path))


def is_whole(url: str, size: int | None, sha256: str) -> bool:
    """Whether a file is there with this size (None: any) and checksum. On other than local disks, where
    reading takes long, the checksum is not looked at.
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
    """A file to read."""
    system, path = _located(url)
    with system.open(path, "rb") as file:
        yield file


def discard(url: str) -> None:
    """Delete a file, if it is there."""
    system, path = _located(url)
    if system.exists(path):
        system.rm(path)


def read_json(url: str) -> Any:
    """What a file says, None where there is none or it is no JSON."""
    system, path = _located(url)
    try:
        return json.loads(system.cat_file(path))
    except (FileNotFoundError, ValueError):
        return None


def write_json(url: str, data: Any) -> None:
    """All of it or nothing."""
    with written(url) as file:
        file.write((json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


@contextmanager
def written(url: str) -> Iterator[Writable]:
    """A file to write, which is there under its name when all has been written, and not before."""
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
    """Delete what runs that were killed had begun to write. What another run is writing stays."""
    system, path = _located(out)
    for part in system.glob(f"{path.rstrip('/')}/**/*{_PART}*"):
        with suppress(FileNotFoundError, NotImplementedError):
            age = time.time() - system.modified(part).timestamp()
            if age > (_ENDED if _has_ended(part) else _FORGOTTEN):
                system.rm(part)


def _has_ended(part: str) -> bool:
    """Whether the process that wrote a file was one of this machine and has ended."""
    owner = _OWNER.search(part)
    if owner is None or owner["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(owner["process"]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and of another user
        pass
    return False


def _located(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. In a local path, `::` is part of a name; elsewhere
    fsspec reads it as a chain of URLs.
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
                f"{url}: an input in the folder of the output, {out}, expected inputs elsewhere: the next "
                f"run would take answers for inputs. Give --out another folder."
            )


def _matches(pattern: str) -> list[str]:
    system, path = _located(pattern)
    found = [path] if system.isfile(path) else sorted(system.glob(path))
    files = [system.unstrip_protocol(one) for one in found if system.isfile(one)]
    if not files:
        raise DataError(f"{pattern}: no file has a name like this. Correct the pattern.")
    return files


def _stem(name: str) -> str:
    """Without what says how it is packed and written: `a/b.jsonl.zst` is `a/b`. A `::` would make a chain of
    URLs of the output's name.
    """
    for suffix in (".gz", ".zst"):
        name = name.removesuffix(suffix)
    return posixpath.splitext(name)[0].replace("::", "%3A%3A")


def _key(url: str) -> str:
    system, path = _located(url)
    return str(system.ukey(path))

"""Files on a disk, or wherever fsspec reaches (s3://, gs://, memory://), written whole or not at all."""

import json
import posixpath
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import fsspec

from ..data import Readable
from ..errors import DataError

_PART = ".part-"  # what is being written, and counts for nothing


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


def find_shards(patterns: Sequence[str]) -> list[Shard]:
    """The files that paths, URLs and patterns name, each with a name of its own: its path below the
    folder that all have in common.
    """
    urls = sorted({url for pattern in patterns for url in _matches(pattern)})
    folders = {posixpath.dirname(url) for url in urls}
    common = posixpath.commonpath(folders) if len(folders) > 1 else next(iter(folders))
    shards = [Shard(url, _stem(posixpath.relpath(url, common)), _key(url)) for url in urls]
    by_name = dict[str, Shard]()
    for shard in shards:
        if shard.name in by_name:
            raise DataError(
                f"{by_name[shard.name].url} and {shard.url}: what comes of either would be called "
                f"{shard.name}, expected names that differ. Rename one of them."
            )
        by_name[shard.name] = shard
    return shards


def size_of(url: str) -> int | None:
    """Bytes of a file, None where there is none."""
    system, path = fsspec.core.url_to_fs(url)
    try:
        return int(system.size(path))
    except (FileNotFoundError, TypeError):
        return None


@contextmanager
def opened(url: str) -> Iterator[Readable]:
    """A file to read."""
    system, path = fsspec.core.url_to_fs(url)
    with system.open(path, "rb") as file:
        yield file


def discard(url: str) -> None:
    """Delete a file, if it is there."""
    system, path = fsspec.core.url_to_fs(url)
    if system.exists(path):
        system.rm(path)


def read_json(url: str) -> Any:
    """What a file says, None where there is none or it is no JSON."""
    system, path = fsspec.core.url_to_fs(url)
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
    system, path = fsspec.core.url_to_fs(url)
    system.makedirs(posixpath.dirname(path), exist_ok=True)
    part = f"{path}{_PART}{uuid.uuid4().hex[:12]}"
    try:
        with system.open(part, "wb") as file:
            yield file
        system.mv(part, path)
    except BaseException:
        if system.exists(part):
            system.rm(part)
        raise


def _matches(pattern: str) -> list[str]:
    system, path = fsspec.core.url_to_fs(pattern)
    found = [path] if system.isfile(path) else sorted(system.glob(path))
    files = [system.unstrip_protocol(one) for one in found if system.isfile(one)]
    if not files:
        raise DataError(f"{pattern}: no file has a name like this. Correct the pattern.")
    return files


def _stem(name: str) -> str:
    """Without what says how it is packed and written: `a/b.jsonl.zst` is `a/b`."""
    for suffix in (".gz", ".zst"):
        name = name.removesuffix(suffix)
    return posixpath.splitext(name)[0]


def _key(url: str) -> str:
    system, path = fsspec.core.url_to_fs(url)
    return str(system.ukey(path))

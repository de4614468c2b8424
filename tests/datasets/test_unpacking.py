"""Archives from strangers: their files are written below the folder, and nothing else."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from foveal.datasets._unpacking import unpack

pytestmark = pytest.mark.slow


def packed(*members: tarfile.TarInfo) -> tarfile.TarFile:
    """Return an archive in which every file has the content `abc`."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for member in members:
            member.size = 3 if member.isreg() else 0
            archive.addfile(member, io.BytesIO(b"abc"))
    content.seek(0)
    return tarfile.open(fileobj=content)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, target, 0o4777
    return made


def test_files_and_folders_are_written(tmp_path: Path) -> None:
    unpack(packed(member("a", tarfile.DIRTYPE), member("a/b.txt"), member("c/d.txt")), tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path).as_posix() for path in files} == {"a/b.txt", "c/d.txt"}
    assert all(path.read_text() == "abc" for path in files)
    assert not any(path.stat().st_mode & 0o7111 for path in files)


@pytest.mark.parametrize(
    "members",
    [
        [member("../outside.txt")],
        [member("/tmp/outside.txt")],
        [member("a/../../outside.txt")],
        [member("link", tarfile.SYMTYPE, ".."), member("link/outside.txt")],
        [member("a.txt"), member("b.txt", tarfile.LNKTYPE, "a.txt")],
        [member("pipe", tarfile.FIFOTYPE)],
    ],
)
def test_all_else_is_refused(members: Sequence[tarfile.TarInfo], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with pytest.raises(tarfile.TarError, match="not a file below the folder"):
        unpack(packed(*members), folder)
    assert not (tmp_path / "outside.txt").exists()
    assert not (folder / "link").exists()

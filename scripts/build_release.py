"""Build the files of a release from the files of a commit: wheels, source archives and the npm package.

    python scripts/build_release.py dist                        everything
    python scripts/build_release.py dist --only foveal          one project
    python scripts/build_release.py dist --without-kernels      no wheel of foveal-native, which needs a compiler
    python scripts/build_release.py dist --twice                build again in another folder; the bytes must be equal

The build reads a copy of the commit, so files that are not committed cannot get into a release. All times in the
archives are the time of the commit (SOURCE_DATE_EPOCH). The active environment must have the build tools and torch,
as after CONTRIBUTING.md: there is no build isolation, which would download torch again.
"""

import argparse
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SUMS = "SHA256SUMS"
# Build tools keep the permissions of files, which depend on the umask.
_UMASK = 0o022


class Project(NamedTuple):
    """A project of this repository with its own release files."""

    name: str
    folder: str
    has_source: bool = (
        True  # a source archive, which can be built without the rest of the repository
    )


PROJECTS = (
    Project("foveal", "."),
    Project("foveal-native", "native"),
    Project("foveal-triton", "gpu"),
    Project("foveal-shelf", "shelf", has_source=False),  # data, which the wheel contains as it is
    Project("foveal-runtime", "runtimes/python", has_source=False),  # its source is foveal/runtime
)
KERNELS = "foveal-native"
NPM = Project("npm", "runtimes/js", has_source=False)
NAMES = tuple(project.name for project in (*PROJECTS, NPM))


def build_release(
    commit: str, into: Path, *, names: Sequence[str] = NAMES, kernels: bool = True
) -> None:
    """Build projects of a commit.

    Args:
        commit: The commit to build.
        into: The folder for the files.
        names: Names of projects.
        kernels: Build the wheel of foveal-native.
    """
    into.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(time_of(commit))}
    with TemporaryDirectory(prefix="foveal-build-") as folder:
        tree = Path(folder)
        export(commit, tree)
        for project in (one for one in (*PROJECTS, NPM) if one.name in names):
            print(f"build {project.name}", flush=True)
            if project is NPM:
                words = ["npm", "pack", "--silent", "--pack-destination", str(into.resolve())]
                run(words, tree / project.folder, environment)
                continue
            if kernels or project.name != KERNELS:
                words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"]
                words += ["--no-build-isolation", "-w", str(into.resolve()), "."]
                run(words, tree / project.folder, environment)
            if project.has_source:
                build_source(tree / project.folder, into, environment)


def build_twice(
    commit: str, into: Path, *, names: Sequence[str] = NAMES, kernels: bool = True
) -> None:
    """Build as `build_release`, twice in folders with different names, and exit if the bytes differ."""
    build_release(commit, into, names=names, kernels=kernels)
    with TemporaryDirectory() as again:
        build_release(commit, Path(again), names=names, kernels=kernels)
        different = differing(into, Path(again))
    if different:
        sys.exit(f"two builds differ: {', '.join(different)}")
    print(f"two builds have the same bytes: {len(digests(into))} files")


def build_source(project: Path, into: Path, environment: dict[str, str]) -> None:
    """Build a source archive by the build backend of a project."""
    with (project / "pyproject.toml").open("rb") as file:
        backend = tomllib.load(file)["build-system"]["build-backend"]
    program = f"import sys, {backend} as backend; backend.build_sdist(sys.argv[1])"
    with TemporaryDirectory() as folder:
        run([sys.executable, "-c", program, folder], project, environment)
        (archive,) = Path(folder).glob("*.tar.gz")
        normalized = normalize(archive.read_bytes(), int(environment["SOURCE_DATE_EPOCH"]))
        (into / archive.name).write_bytes(normalized)


def normalize(archive: bytes, seconds: int) -> bytes:
    """Return a compressed tar archive without what differs between builds: times, owners and the order of files."""
    content = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as old,
        tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = seconds, 0, 0, "", ""
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(content.getvalue(), mtime=seconds)


def export(commit: str, folder: Path) -> None:
    """Write the files of a commit to a folder."""
    done = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def time_of(commit: str) -> int:
    """Return the time of a commit in seconds."""
    words = ["git", "log", "-1", "--format=%ct", commit]
    return int(subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def run(words: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a program, which must succeed; its output is printed only if it fails."""
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        umask=_UMASK,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(words)}\n{done.stdout}")


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a release, by its name."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_sums(folder: Path) -> None:
    """Write the checksums in the format of sha256sum."""
    lines = [f"{digest}  {name}\n" for name, digest in digests(folder).items()]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def differing(first: Path, second: Path) -> list[str]:
    """Return the names of files that only one folder has, or that differ."""
    ours, theirs = digests(first), digests(second)
    return sorted(
        name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)
    )


def main() -> None:
    """Build, and with --twice compare."""
    parser = argparse.ArgumentParser(description="Build the files of a release.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--without-kernels", action="store_true")
    parser.add_argument("--twice", action="store_true")
    given = parser.parse_args()
    build = build_twice if given.twice else build_release
    build(given.commit, given.folder, names=given.only, kernels=not given.without_kernels)
    write_sums(given.folder)


if __name__ == "__main__":
    main()

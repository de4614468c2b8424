"""Write what CI installs, each package pinned and with the sha256 of its file, and the licenses of all packages.

    python scripts/lock.py

Asks pip which files it would install under constraints.txt, and installs nothing. Run it after a change of
constraints.txt or of the dependencies in pyproject.toml.

    requirements-ci-user.txt   the package without extras, and pytest for its tests
    requirements-ci.txt        all extras and groups, except the group docstrings
    requirements-pydoclint.txt the group docstrings; its docstring_parser_fork overwrites files of docstring_parser,
                               which the command line needs, so scripts/check installs it in its own folder
    requirements-triton.txt    the compiler of GPU kernels, which scripts/check_triton installs in its own folder
    scripts/licenses.json      the license of each of these packages and of torch

The files are those for Linux on x86-64 and this version of Python. torch is left out: its builds for CPU and
CUDA have one version and different files, and which one pip finds depends on the machine's index. CI installs
torch by its version, without its dependencies, which are listed here.
"""

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from licenses import Licensed, license_of, write_licenses
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
BUILD = ("pip", "setuptools", "hatchling")  # build and install tools of CI
TESTS = ("beartype", "hypothesis", "pytest", "pytest-timeout")  # tests of the core, without extras
EXTRAS = "audio,client,export,hf,ray,serve,tensorboard,video"
LOCKS: dict[str, tuple[tuple[str, ...], ...]] = {
    "requirements-ci-user.txt": ((".",), (*BUILD, *TESTS)),
    "requirements-ci.txt": (
        (f".[{EXTRAS}]",),
        (*BUILD, "editables"),
        ("--group", "dev", "--group", "docs", "--group", "peers"),
        ("--no-deps", "supar==1.1.4"),  # only its structures are used, which need nothing else
    ),
    "requirements-pydoclint.txt": (("--group", "docstrings"),),
    "requirements-triton.txt": (("--no-deps", "triton"),),
}
LEFT_OUT = frozenset({"foveal", "torch"})


def resolved(asked: tuple[str, ...]) -> list[dict[str, Any]]:
    """The report of pip on each package that it would install."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        constraints = ("-c", "constraints.txt", "--build-constraint", "constraints.txt")
        command = ("install", "--dry-run", "--ignore-installed", "-qq", "--report", str(report))
        subprocess.run(
            [sys.executable, "-m", "pip", *command, *constraints, *asked], cwd=ROOT, check=True
        )
        return json.loads(report.read_text(encoding="utf-8"))["install"]


def line_of(one: dict[str, Any]) -> str:
    """The line of a package in a lock file."""
    name, version = canonicalize_name(one["metadata"]["name"]), one["metadata"]["version"]
    return f"{name}=={version} --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}"


def licensed(one: dict[str, Any], asked: tuple[str, ...]) -> Licensed:
    """The license of a package. What the library and its extras need is for use, the rest for development."""
    about = one["metadata"]
    return Licensed(
        name=canonicalize_name(about["name"]),
        version=about["version"].partition("+")[0],  # without the build of torch
        license=license_of(about),
        purpose="use" if asked[0].startswith(".") else "development",
    )


def main() -> None:
    """Write all files."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    machine = f"{platform.system()} {platform.machine()}, {python}"
    found: dict[str, Licensed] = {}
    for file, parts in LOCKS.items():
        lines: dict[str, str] = {}
        for asked in parts:
            for one in resolved(asked):
                package = licensed(one, asked)
                if package.name not in LEFT_OUT:
                    lines[package.name] = line_of(one)
                if package.name not in found or package.purpose == "use":
                    found[package.name] = package
        text = "".join(f"{lines[name]}\n" for name in sorted(lines))
        (ROOT / file).write_text(
            f"# Written by scripts/lock.py for {machine}. Do not edit.\n{text}", encoding="utf-8"
        )
        print(f"{file}: {len(lines)} packages")
    del found["foveal"]
    write_licenses(list(found.values()), datetime.now(UTC).date().isoformat())


if __name__ == "__main__":
    main()

"""Write what CI installs, each package pinned and with the sha256 of its file.

    python scripts/lock.py

Asks pip which files it would install under constraints.txt, and installs nothing. Run it after a change of
constraints.txt or of the dependencies in pyproject.toml.

    requirements-ci-user.txt   the package without extras, and pytest for its tests
    requirements-ci.txt        all extras and groups, except the group docstrings
    requirements-pydoclint.txt the group docstrings; its docstring_parser_fork overwrites files of docstring_parser,
                               which the command line needs, so scripts/check installs it in its own folder
    requirements-triton.txt    the compiler of GPU kernels, which scripts/check_triton installs in its own folder

The files are those for Linux on x86-64 and this version of Python. torch is left out: its builds for CPU and
CUDA have one version and different files, and which one pip finds depends on the machine's index. CI installs
torch by its version, without its dependencies, which are listed here.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
BUILD = ("pip", "setuptools", "hatchling")  # build and install tools of CI
TESTS = ("beartype", "hypothesis", "pytest", "pytest-timeout")  # tests of the core, without extras
EXTRAS = "audio,client,export,hf,ray,serve,tensorboard,video"
LOCKS: dict[str, tuple[tuple[str, ...], ...]] = {
    "requirements-ci-user.txt": ((".", *BUILD, *TESTS),),
    "requirements-ci.txt": (
        (f".[{EXTRAS}]", *BUILD, "editables"),
        ("--group", "dev", "--group", "docs", "--group", "peers"),
        ("--no-deps", "supar==1.1.4"),  # only its structures are used, which need nothing else
    ),
    "requirements-pydoclint.txt": (("--group", "docstrings"),),
    "requirements-triton.txt": (("--no-deps", "triton"),),
}
LEFT_OUT = frozenset({"foveal", "torch"})


def locked(asked: tuple[str, ...]) -> dict[str, str]:
    """The line of each package that pip would install, by its name."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        constraints = ("-c", "constraints.txt", "--build-constraint", "constraints.txt")
        command = ("install", "--dry-run", "--ignore-installed", "-qq", "--report", str(report))
        subprocess.run(
            [sys.executable, "-m", "pip", *command, *constraints, *asked], cwd=ROOT, check=True
        )
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    lines = {}
    for one in found:
        name = canonicalize_name(one["metadata"]["name"])
        if name not in LEFT_OUT:
            digest = one["download_info"]["archive_info"]["hashes"]["sha256"]
            lines[name] = f"{name}=={one['metadata']['version']} --hash=sha256:{digest}"
    return lines


def main() -> None:
    """Write all files."""
    about = f"{platform.system()} {platform.machine()}, Python {sys.version_info.major}.{sys.version_info.minor}"
    for file, parts in LOCKS.items():
        lines: dict[str, str] = {}
        for asked in parts:
            lines |= locked(asked)
        text = "".join(f"{lines[name]}\n" for name in sorted(lines))
        (ROOT / file).write_text(
            f"# Written by scripts/lock.py for {about}. Do not edit.\n{text}", encoding="utf-8"
        )
        print(f"{file}: {len(lines)} packages")


if __name__ == "__main__":
    main()

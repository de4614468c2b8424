"""Install the wheels of a release in empty environments, and run the first pages of the documentation there.

    python scripts/build_release.py dist && python scripts/check_release.py dist

The environments get foveal, foveal-native, foveal-triton, foveal-shelf and foveal-runtime from a local package index that contains only
the files of the release, and everything else from pip's usual index, with the versions of constraints.txt. Their PATH
has no compiler and no git. The script fails if

- installing after torch takes more than a minute of CPU time, or a package of ours comes from another index,
- a command or a Python block of README.md or docs/first_model.md fails, or prints another text than the page shows,
- the kernels are not used automatically,
- a pretrained model is damaged, or does not answer by its name,
- an exported model gives other answers with foveal-runtime, or with the npm package (if npm is installed).
"""

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from build_release import digests
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs/first_model.md")
EXPORTED = ROOT / "tests/fixtures/exports/format_1/transduction"
TORCH = "torch==2.13.0"
# CPU time to install everything but torch. Other programs and the network make the elapsed time longer.
MOST_SECONDS = 60.0
TOOLS = ("head",)  # programs that the pages use in addition to ours
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Installed(NamedTuple):
    """The CPU time of an installation, and the report of pip on each package."""

    cpu_seconds: float
    packages: list[dict[str, Any]]


class Environment:
    """A new virtual environment without a compiler.

    Args:
        folder: An empty folder for the environment and for the files of the programs.
        index: The folder of a package index.
    """

    def __init__(self, folder: Path, index: Path) -> None:
        self.work, self._index = folder / "work", index.as_uri()
        tools = folder / "tools"
        for made in (self.work, tools):
            made.mkdir(parents=True)
        for name in TOOLS:
            (tools / name).symlink_to(shutil.which(name) or name)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
        self._variables = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        self._variables["PATH"] = f"{folder / 'env/bin'}:{tools}"

    def install(self, *requirements: str) -> Installed:
        """Install packages."""
        report = self.work / "report.json"
        words = ("install", "-q", "--no-cache-dir", "--report", str(report))
        options = ("--extra-index-url", self._index, "-c", str(ROOT / "constraints.txt"))
        begin, used = time.monotonic(), _cpu_seconds()
        self.run(["python", "-m", "pip", *words, *options, *requirements])
        seconds, used = time.monotonic() - begin, _cpu_seconds() - used
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
        asked = " ".join(requirements)
        print(
            f"{seconds:6.1f} s  pip install {asked}: {len(found)} packages, {used:.1f} s of CPU time",
            flush=True,
        )
        return Installed(used, found)

    def run(self, words: Sequence[str] | str, **variables: str) -> str:
        """Run a program or a line of a shell in the environment, which must succeed. Returns its output."""
        done = subprocess.run(
            words,
            shell=isinstance(words, str),
            executable="/bin/sh" if isinstance(words, str) else None,
            cwd=self.work,
            env=self._variables | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            shown = words if isinstance(words, str) else shlex.join(words)
            sys.exit(f"failed: {shown}\n{done.stdout}{done.stderr}")
        return done.stdout


def _cpu_seconds() -> float:
    """The CPU time of all programs that have run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_index(dist: Path, folder: Path) -> None:
    """Write a package index (PEP 503) of the wheels of a release."""
    links: dict[str, list[str]] = {}  # by project: the kernels have a wheel for each platform
    for name, digest in digests(dist).items():
        if name.endswith(".whl"):
            address = f"{(dist / name).resolve().as_uri()}#sha256={digest}"
            link = f'<a href="{address}">{name}</a>\n'
            links.setdefault(parse_wheel_filename(name)[0], []).append(link)
    for project, lines in links.items():
        (folder / project).mkdir(parents=True)
        page = f"<!doctype html>\n{''.join(lines)}"
        (folder / project / "index.html").write_text(page, encoding="utf-8")


def check_origins(installed: Sequence[Mapping[str, Any]], dist: Path) -> None:
    """Fail if a package of ours is not the file of the release, or another package was built from source."""
    ours = {f"sha256={digest}" for digest in digests(dist).values()}
    for one in installed:
        name, download = canonicalize_name(one["metadata"]["name"]), one["download_info"]
        if name.startswith("foveal") and download["archive_info"]["hash"] not in ours:
            sys.exit(f"{name} does not come from {dist}: {download['url']}")
        if not download["url"].partition("#")[0].endswith(".whl"):
            sys.exit(f"{name} has no wheel here, so pip needs a compiler: {download['url']}")


def commands(page: Path) -> Iterator[str]:
    """Yield the commands of a page except pip, whose requirements the check installs from the index."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            command = line.removeprefix("$ ")
            if not command.startswith("pip install "):
                yield command


def requirements(page: Path) -> list[str]:
    """Return what the page installs after torch, by the name on an index instead of the path of a checkout."""
    found = []
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:2] == ["pip", "install"]:
                found += [
                    f"foveal{word[1:]}" for word in words if re.fullmatch(r"\.(\[.*\])?", word)
                ]
    return found


def check_pages(environment: Environment) -> None:
    """Run all commands and programs of the first pages."""
    for page in PAGES:
        for command in commands(page):
            begin = time.monotonic()
            environment.run(command)
            print(f"{time.monotonic() - begin:6.1f} s  {command}", flush=True)
    text = PAGES[0].read_text(encoding="utf-8")
    program = environment.work / "readme.py"
    program.write_text("\n".join(BLOCK.findall(text)), encoding="utf-8")
    begin = time.monotonic()
    printed = environment.run(["python", str(program)])
    if printed != "".join(OUTPUT.findall(text)):
        sys.exit(f"the programs of README.md print another text than the page shows:\n{printed}")
    print(f"{time.monotonic() - begin:6.1f} s  the programs of README.md")


def check_library(dist: Path, index: Path, folder: Path) -> None:
    """Install foveal and its kernels, and run the pages."""
    environment = Environment(folder, index)
    environment.install(TORCH)
    optional = ("foveal-native", "foveal-triton", "foveal-shelf")
    installed = environment.install(*requirements(PAGES[0]), *optional)
    check_origins(installed.packages, dist)
    if (seconds := installed.cpu_seconds) > MOST_SECONDS:
        sys.exit(f"the installation took {seconds:.0f} s, expected at most {MOST_SECONDS:.0f} s")
    print(environment.run(["python", str(ROOT / "scripts/check_native.py")]), end="")
    print(environment.run(["foveal", "models", "verify"]), end="")
    print(environment.run(["foveal", "predict", "g2p-en", "Reykjavik"]), end="")
    check_pages(environment)


def check_runtimes(dist: Path, index: Path, folder: Path) -> None:
    """Install the runtimes, without torch, and compare the answers of an exported model with the stored ones."""
    environment = Environment(folder, index)
    check_origins(environment.install("foveal-runtime").packages, dist)
    print(environment.run(["foveal-run", str(EXPORTED), "--self-test"]), end="")
    packed = list(dist.glob("*.tgz"))
    if not packed or shutil.which("npm") is None:
        print("not checked: the npm package, because npm or the package is missing")
        return
    npm = folder / "npm"
    npm.mkdir()
    words = ["npm", "install", "--silent", "--omit=optional", str(packed[0].resolve())]
    subprocess.run(words, cwd=npm, check=True)
    words = ["npx", "foveal-run", str(EXPORTED), "--engine", "plain", "--self-test"]
    subprocess.run(words, cwd=npm, check=True)


def main() -> None:
    """Check a folder of release files."""
    parser = argparse.ArgumentParser(description="Install the wheels of a release and run them.")
    parser.add_argument("folder", type=Path)
    dist = parser.parse_args().folder
    with TemporaryDirectory(prefix="foveal-release-") as made:
        folder = Path(made)
        write_index(dist, folder / "index")
        check_runtimes(dist, folder / "index", folder / "runtime")
        check_library(dist, folder / "index", folder / "library")


if __name__ == "__main__":
    main()

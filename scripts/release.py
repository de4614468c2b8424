"""Rehearse a release: check the version, build every file twice, install the wheels and run the README.

    python scripts/release.py                 the rehearsal; nothing is published or tagged
    python scripts/release.py --quick         without the C++ kernels and without the installation
    python scripts/release.py --tag           the same, and then an annotated tag vX.Y.Z in this clone

The steps: versions and changelog; pinned dependencies, advisories and licenses; all files, built twice with the same
bytes; checksums and bill of materials; wheels in an empty environment without a compiler; the first pages from these
wheels. Publishing is the work of .github/workflows/release.yml, which starts when somebody pushes the tag:
the script never uploads anything.
"""

import argparse
import shutil
import subprocess
import sys
import zipfile
from datetime import UTC, date, datetime
from email.parser import HeaderParser
from pathlib import Path

from audit import advisories_read
from build_release import ROOT, build_twice, write_sums
from release_versions import blockers, notes, the_version
from sbom import write_bill

DIST = ROOT / "dist"
MOST_DAYS = 30  # since the list of advisories was read


def step(title: str) -> None:
    """Print the title of a step."""
    print(f"\n== {title}", flush=True)


def script(*words: str) -> None:
    """Run another script of this folder, which must succeed."""
    name, *rest = words
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / name), *rest], check=False)
    if done.returncode != 0:
        sys.exit(f"scripts/{name} failed")


def git(*words: str) -> str:
    """Return the output of git."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def check_state(*, tag: bool) -> str:
    """Check versions, changelog and checkout. Returns the version."""
    version = the_version()
    print(
        f"version {version}, in every file; {len(notes(version).splitlines())} lines in CHANGELOG.md"
    )
    missing = list(blockers())
    if git("status", "--porcelain"):
        missing.append(
            "the checkout has changes that are not committed, which the files do not contain"
        )
    if git("tag", "--list", f"v{version}"):
        missing.append(f"the tag v{version} exists")
    for one in missing:
        print(f"before publishing: {one}")
    if tag and missing:
        sys.exit("no tag: solve the problems above first")
    return version


def check_advisories() -> None:
    """Fail if the list of advisories is old."""
    days = (datetime.now(UTC).date() - date.fromisoformat(advisories_read())).days
    if days > MOST_DAYS:
        sys.exit(f"scripts/advisories.json was read {days} days ago, expected at most {MOST_DAYS}")
    print(f"the list of advisories is {days} days old")


def check_metadata(dist: Path, version: str) -> None:
    """Fail if a wheel lacks its license, or has another version or no description."""
    for path in dist.glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            about = HeaderParser().parsestr(wheel.read(metadata).decode())
            licenses = [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
        if about["Version"] != version or not licenses or not about.get_payload():
            sys.exit(f"{path.name}: expected version {version}, a license and a description")
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {about['License-Expression']}")


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description="Rehearse a release; publish nothing.")
    parser.add_argument(
        "--quick", action="store_true", help="neither the kernels nor the installation"
    )
    parser.add_argument("--tag", action="store_true", help="make the tag at the end")
    parser.add_argument("--folder", type=Path, default=DIST)
    arguments = parser.parse_args()
    if arguments.tag and arguments.quick:
        parser.error("--tag needs all steps: leave out --quick")

    commit = git("rev-parse", "HEAD")  # later commits change nothing
    step("version, changelog and checkout")
    version = check_state(tag=arguments.tag)
    step("dependencies: versions, advisories, licenses")
    script("audit.py")
    script("licenses.py")
    check_advisories()
    step("files, built twice")
    if arguments.folder.exists():
        shutil.rmtree(arguments.folder)
    build_twice(commit, arguments.folder, kernels=not arguments.quick)
    check_metadata(arguments.folder, version)
    step("bill of materials and checksums")
    print(write_bill(arguments.folder, commit).name)
    write_sums(arguments.folder)
    if not arguments.quick:
        step("wheels in empty environments, and the first pages from them")
        script("check_release.py", str(arguments.folder))
    if arguments.tag:
        git("tag", "--annotate", f"v{version}", commit, "--message", f"Foveal {version}")
        print(f"\nTag v{version} is made. To publish: git push origin v{version}")
    else:
        print("\nThe rehearsal is complete. Nothing was published or tagged.")


if __name__ == "__main__":
    main()

"""The version of a release: one number in every file that has one, and its section in the changelog.

python scripts/release_versions.py                print the version
python scripts/release_versions.py --notes        print its section of the changelog
python scripts/release_versions.py --tag v0.1.0   fail unless the tag is the version, and it can be published
"""

import argparse
import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = (
    "pyproject.toml",
    "native/pyproject.toml",
    "gpu/pyproject.toml",
    "runtimes/python/pyproject.toml",
    "shelf/pyproject.toml",
)
SECTION = re.compile(
    r"^## (?P<title>\[Unreleased\]: (?P<coming>\S+)|\[(?P<released>[^]]+)\] - (?P<date>\d{4}-\d\d-\d\d))$",
    re.MULTILINE,
)


def versions() -> dict[str, str]:
    """Return the version in each file that has one, by the name of the file."""
    found = {}
    for name in PROJECTS:
        found[name] = str(tomllib.loads(_text(name))["project"]["version"])
    found["foveal/__init__.py"] = _constant("foveal/__init__.py", "__version__")
    found["runtimes/js/package.json"] = str(
        json.loads(_text("runtimes/js/package.json"))["version"]
    )
    found["runtimes/js/README.md"] = _match(
        "runtimes/js/README.md", r"foveal-runtime-([\d.]+)\.tgz"
    )
    found["CITATION.cff"] = _match("CITATION.cff", r"^version: (\S+)$")
    found["docs/versions.md"] = _match("docs/versions.md", r"^  version = \{(\S+)\},$")
    found["CHANGELOG.md"] = changelog()[0]
    return found


def the_version() -> str:
    """Return the version of all files, or exit if files have different versions."""
    found = versions()
    expected = found[PROJECTS[0]]
    other = [f"{name} has {one}" for name, one in found.items() if one != expected]
    if other:
        sys.exit(f"{PROJECTS[0]} has version {expected}, but {'; '.join(other)}")
    return expected


def changelog() -> tuple[str, str | None]:
    """Return the version of the first section of the changelog, and its date if it is released."""
    first = SECTION.search(_text("CHANGELOG.md"))
    if first is None:
        sys.exit(
            "CHANGELOG.md: expected a section '## [Unreleased]: X.Y.Z' or '## [X.Y.Z] - YYYY-MM-DD'"
        )
    return first["coming"] or first["released"], first["date"]


def notes(version: str) -> str:
    """Return the section of the changelog on a version, without its title."""
    text = _text("CHANGELOG.md")
    sections = list(SECTION.finditer(text))
    for one, following in zip(sections, [*sections[1:], None], strict=True):
        if version in (one["coming"], one["released"]):
            return text[one.end() : following.start() if following else None].strip()
    sys.exit(f"CHANGELOG.md has no section about {version}")


def blockers() -> Iterator[str]:
    """Yield what is missing before a version can be published."""
    version, date = changelog()
    if date is None:
        yield f"CHANGELOG.md: the section about {version} has no date"
    urls = tomllib.loads(_text("pyproject.toml"))["project"].get("urls", {})
    for name in ("Documentation", "Repository"):
        if name not in urls:
            yield f"pyproject.toml: [project.urls] has no {name}"
    if not re.search(r"^repository-code: ", _text("CITATION.cff"), re.MULTILINE):
        yield "CITATION.cff: no repository-code"
    # npm publishes with a proof of origin only if the package names the repository of the workflow.
    if "repository" not in json.loads(_text("runtimes/js/package.json")):
        yield "runtimes/js/package.json: no repository"


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _match(name: str, pattern: str) -> str:
    found = re.search(pattern, _text(name), re.MULTILINE)
    if found is None:
        sys.exit(f"{name}: found no version by the pattern {pattern}")
    return found[1]


def _constant(name: str, variable: str) -> str:
    for node in ast.parse(_text(name)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == variable:
            return str(ast.literal_eval(node.value))
    sys.exit(f"{name}: found no {variable}")


def main() -> None:
    """Print the version or its notes, or check a tag."""
    parser = argparse.ArgumentParser(description="The version of a release.")
    parser.add_argument("--notes", action="store_true")
    parser.add_argument("--tag")
    given = parser.parse_args()
    version = the_version()
    if given.tag is not None and given.tag != f"v{version}":
        sys.exit(f"the tag is {given.tag}, expected v{version}")
    if given.tag is not None and (missing := list(blockers())):
        sys.exit("\n".join(missing))
    print(notes(version) if given.notes else version)


if __name__ == "__main__":
    main()

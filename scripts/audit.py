"""List the dependencies of foveal and its extras: versions, licenses and known vulnerabilities.

    python scripts/audit.py

The script works offline. It reads requirements from the installed packages, versions from constraints.txt, and
vulnerabilities from scripts/advisories.json, a manual list of public advisories up to its date. A package that is not
on the list may still be unsafe: run pip-audit before a deployment.

Fails if a package is not pinned, is installed in another version, is pinned to an affected one, or has a
license that is not on the lists of licenses.py.
"""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from licenses import EXCEPTIONS, license_faults, license_of
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
ADVISORIES = ROOT / "scripts" / "advisories.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Advisory:
    """One known weakness of some versions of a package."""

    package: str
    id: str
    affected: str  # a specifier, such as <0.16.0
    about: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Audited:
    """A package that is installed with an extra."""

    name: str
    needed_by: str
    license: str
    installed: str
    pinned: str | None
    known: tuple[Advisory, ...]  # of any version

    @property
    def affecting(self) -> tuple[Advisory, ...]:
        """The advisories of the pinned version."""
        version = Version(self.pinned or self.installed)
        return tuple(one for one in self.known if version in SpecifierSet(one.affected))

    @property
    def faults(self) -> Iterator[str]:
        """Yield problems that must be solved before a release."""
        if self.pinned is None:
            yield f"{self.name}: not pinned. Add {self.name}=={self.installed} to constraints.txt."
        # The part after a plus, such as +cpu, names a build of the same version.
        elif Version(self.installed).public != Version(self.pinned).public:
            yield (
                f"{self.name}: {self.installed} is installed, constraints.txt has {self.pinned}. "
                f"Install with -c constraints.txt."
            )
        yield from license_faults(self.name, self.license)
        for one in self.affecting:
            yield f"{self.name} {self.pinned}: {one.id} ({one.about}). Affected: {one.affected}."


def audit() -> list[Audited]:
    """Every package that is installed with any extra, by name."""
    pinned, known = constraints(), advisories()
    return [
        Audited(
            name=name,
            needed_by=needed_by,
            license=license_of(metadata.metadata(name).json),
            installed=metadata.version(name),
            pinned=pinned.get(name),
            known=tuple(one for one in known if one.package == name),
        )
        for name, needed_by in sorted(_closure().items())
    ]


def constraints() -> dict[str, str]:
    """Versions by the canonical names of packages."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonicalize_name(name): version.strip() for name, _, version in pairs}


def advisories() -> list[Advisory]:
    """The list that is kept offline."""
    content = json.loads(ADVISORIES.read_text(encoding="utf-8"))
    return [Advisory(**one) for one in content["advisories"]]


def advisories_read() -> str:
    """The date of the list, as YYYY-MM-DD."""
    return json.loads(ADVISORIES.read_text(encoding="utf-8"))["read"]


def _closure() -> dict[str, str]:
    """Packages that are needed, each with one that needs it."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    own: list[str] = [
        *project["dependencies"],
        *(text for many in extras.values() for text in many),
    ]
    waiting = [(Requirement(text), "foveal") for text in own]
    waiting = [(one, by) for one, by in waiting if one.name != "foveal"]  # an extra in another
    found: dict[str, str] = {}
    while waiting:
        requirement, needed_by = waiting.pop(0)
        name = canonicalize_name(requirement.name)
        if name not in found:
            found[name] = needed_by
            waiting += [(more, name) for more in _requirements(name, requirement.extras)]
    return found


def _requirements(name: str, extras: set[str]) -> list[Requirement]:
    """Return the requirements of a package on this machine, with the given extras."""
    found = [Requirement(text) for text in metadata.requires(name) or ()]
    environments: Sequence[Mapping[str, str]] = [{"extra": extra} for extra in (*extras, "")]
    return [
        one
        for one in found
        if one.marker is None or any(map(one.marker.evaluate, map(dict, environments)))
    ]


def table(audited: Sequence[Audited]) -> str:
    """Return all packages with their advisories as a Markdown table."""
    lines = [
        "| package | pinned | needed by | license | advisories known, with the versions they affect |",
        "|---|---|---|---|---|",
    ]
    for one in audited:
        known = "; ".join(f"{each.id} ({each.affected})" for each in one.known)
        cells = (one.name, one.pinned or "not pinned", one.needed_by, one.license, known)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    number = sum(len(one.known) for one in audited)
    affecting = sum(len(one.affecting) for one in audited)
    return "\n".join(
        [
            *lines,
            "",
            f"{len(audited)} packages, {number} advisories known on {advisories_read()}, {affecting or 'none'} affecting.",
            *(f"{one.name}: {EXCEPTIONS[one.name]}." for one in audited if one.name in EXCEPTIONS),
        ]
    )


def main() -> None:
    """Print the packages and their problems."""
    audited = audit()
    print(table(audited))
    sys.exit("\n".join(fault for one in audited for fault in one.faults) or 0)


if __name__ == "__main__":
    main()

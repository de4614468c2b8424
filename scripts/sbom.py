"""Write the software bill of materials of a release in the format CycloneDX 1.6.

    python scripts/sbom.py dist

The file lists the wheels and archives of the release with their checksums, and the packages that they install with all
extras, in the versions that CI tests: names, versions and licenses from scripts/licenses.json, checksums from
requirements-ci.txt. pip installs other versions for users without the constraints.
"""

import argparse
import json
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build_release import SUMS, digests, time_of
from licenses import LICENSES, Licensed, licenses, parts_of
from release_versions import ROOT, the_version

LOCK = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+) --hash=sha256:(?P<digest>\w{64})$", re.M
)
# Licenses in scripts/licenses.json that are identifiers of SPDX; the others are names in the words of their authors.
SPDX = frozenset(one for one in LICENSES if re.fullmatch(r"[\w.-]+-[\w.-]+|MIT|0BSD|Zlib", one))


def bill_of_materials(dist: Path, commit: str) -> dict[str, Any]:
    """Return the bill of materials of the files in a folder.

    Args:
        dist: The files of a release.
        commit: The commit that they were built from.
    """
    version = the_version()
    text = (ROOT / "requirements-ci.txt").read_text(encoding="utf-8")
    locked = {one["name"]: one["digest"] for one in LOCK.finditer(text)}
    used = [one for one in licenses() if one.purpose == "use"]
    files = [_file(name, digest) for name, digest in digests(dist).items() if name != SUMS]
    about = {"type": "library", "bom-ref": "foveal", "name": "foveal", "version": version}
    content: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time_of(commit), UTC).isoformat(),
            "component": about | {"licenses": [{"license": {"id": "Apache-2.0"}}]},
        },
        "components": [*files, *(_package(one, locked.get(one.name)) for one in used)],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(content, sort_keys=True))
    return content | {"serialNumber": f"urn:uuid:{serial}"}


def _file(name: str, digest: str) -> dict[str, Any]:
    return {"type": "file", "bom-ref": name, "name": name, "hashes": [_hash(digest)]}


def _package(one: Licensed, digest: str | None) -> dict[str, Any]:
    address = f"pkg:pypi/{one.name}@{one.version}"
    package: dict[str, Any] = {
        "type": "library",
        "bom-ref": address,
        "name": one.name,
        "version": one.version,
        "purl": address,
        "licenses": _licenses(one.license),
    }
    # torch has no digest: its builds for CPU and CUDA have one version and different files.
    return package if digest is None else package | {"hashes": [_hash(digest)]}


def _licenses(expression: str) -> list[dict[str, Any]]:
    if expression in SPDX:
        return [{"license": {"id": expression}}]
    if parts_of(expression) <= SPDX:
        return [{"expression": expression}]
    return [{"license": {"name": expression}}]


def _hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def write_bill(dist: Path, commit: str) -> Path:
    """Write the bill of materials next to the files of a release, and return its path."""
    path = dist / f"foveal-{the_version()}.cdx.json"
    path.unlink(missing_ok=True)  # an earlier one would list itself
    text = json.dumps(bill_of_materials(dist, commit), indent=1, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")
    return path


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write the bill of materials of a release.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commit", default="HEAD")
    arguments = parser.parse_args()
    print(write_bill(arguments.folder, arguments.commit))


if __name__ == "__main__":
    main()

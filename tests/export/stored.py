"""Folders written by a version of `foveal export`, with their answers in `selftest.jsonl`.

python -m tests.export.stored       writes tests/fixtures/exports/<format>; never for a format that is released
"""

import sys

from foveal.export import ExportOptions, export_bundle
from foveal.runtime._folder import FORMAT
from tests.tasks.stored import BUNDLES, INPUTS

EXPORTS = BUNDLES.with_name("exports")
# Each folder, its bundle, and how it is exported.
STORED = {
    "transduction": ("transduction", ExportOptions(plain=True)),
    "transduction_int8": ("transduction", ExportOptions(plain=True, storage="int8")),
    "tagging": ("tagging", ExportOptions()),
    "classification": ("classification", ExportOptions(storage="half")),
}


def main() -> None:
    """Export stored bundles."""
    version = max(BUNDLES.iterdir())
    for name, (kind, options) in STORED.items():
        done = export_bundle(
            version / kind, EXPORTS / f"format_{FORMAT}" / name, INPUTS[kind], options
        )
        sys.stdout.write(f"{done.folder}: {done.size} bytes\n")


if __name__ == "__main__":
    main()

"""`foveal prepare`: a corpus as numbers, so that `fit` need not read any text.

The work is in `_prepare_job`, which needs more packages than --help does.
"""

import os
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction, arg


def command(
    inputs: Positional[tuple[str, ...]],
    /,
    *,
    out: Path,
    settings_given: Annotated[UseAppendAction[tuple[str, ...]], arg(name="set")] = (),
    ray: bool = False,
    workers: int | None = None,
) -> None:
    """Cut a corpus into symbols, count them, and write it as numbers; started again, only what is missing.

    `foveal fit OUT --dev dev.tsv --out runs/x` then trains on it, and reads no text.

    Args:
        inputs: files, URLs or patterns in quotes, an example on each line: tab-separated, JSON lines or plain
            text; plain, gzip or zstd.
        out: the folder of the corpus; every process that trains must see it.
        settings_given: one setting as path=value, for example source.unit=code_point; may be repeated.
        ray: on a Ray cluster, that of RAY_ADDRESS or else this machine's cores.
        workers: processes, with --ray; by default as many as this machine has cores.
    """
    from ._prepare_job import prepare  # noqa: PLC0415 - an extra

    number = (workers or os.cpu_count() or 1) if ray else None
    prepare(inputs, out, settings_given, workers=number)

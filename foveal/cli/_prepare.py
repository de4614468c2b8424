"""`foveal prepare`: encode a corpus once, for a `fit` that reads no text.

The work is in `_prepare_job`, which imports more packages than --help needs.
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
    """Tokenize a corpus, build its vocabularies, and write it as numbers; a restart computes only missing files.

    `foveal fit OUT --dev dev.tsv --out runs/x` then trains on it, and reads no text.

    Args:
        inputs: files, URLs or quoted patterns, one example on each line: tab-separated, JSON lines or plain
            text; plain, gzip or zstd.
        out: the folder of the corpus; every training process must see it.
        settings_given: one setting as path=value, for example source.unit=code_point; may be repeated.
        ray: run on a Ray cluster, the one at RAY_ADDRESS or else this machine's cores.
        workers: number of processes, with --ray; defaults to the number of cores of this machine.
    """
    from ._prepare_job import prepare  # noqa: PLC0415 - an extra

    number = (workers or os.cpu_count() or 1) if ray else None
    prepare(inputs, out, settings_given, workers=number)

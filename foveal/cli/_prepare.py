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
    """Tokenize a large corpus, build its vocabularies, and store it as token ids, for fast training.

    `foveal fit OUT --dev dev.tsv --out runs/x` then trains on the prepared corpus. A restart of the command computes
    only the missing files.

    Args:
        inputs: Files, URLs or quoted patterns, one example per line: tab-separated, JSON lines or plain
            text; plain, gzip or zstd.
        out: The folder of the prepared corpus. Every training process must have access to it.
        settings_given: Change one setting, for example source.unit=code_point. Repeat the option for more
            settings.
        ray: Run on the Ray cluster at RAY_ADDRESS or, without this variable, on the cores of this machine.
        workers: The number of processes, with --ray. Defaults to the number of cores of this machine.
    """
    from ._prepare_job import prepare  # noqa: PLC0415 - an extra

    number = (workers or os.cpu_count() or 1) if ray else None
    prepare(inputs, out, settings_given, workers=number)

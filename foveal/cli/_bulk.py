"""`foveal bulk`: predict many files, and on restart only the missing ones.

The work is in `_bulk_job`, which imports more packages than --help needs.
"""

import os
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


def command(
    bundle: Positional[Path],
    /,
    *,
    inputs: Annotated[tuple[str, ...], arg(name="in")],
    out: str,
    nbest: int = 1,
    beam_size: int | None = None,
    text: str = "source",
    max_symbols: int = 2000,
    ray: bool = False,
    workers: int | None = None,
    with_specs: Path | None = None,
) -> None:
    """Predict all lines of files into a folder; a restart computes only missing files.

    Args:
        bundle: the folder of a model that `fit` saved.
        inputs: files, URLs or quoted patterns: one text on each line, or JSON objects (.jsonl); plain, gzip
            or zstd.
        out: a folder or URL: NAME.parquet, and NAME.rejects.jsonl for lines without an answer.
        nbest: number of answers for each line, best first.
        beam_size: beam size; 1 is greedy. Defaults to the model's setting, or nbest.
        text: name of the input field in JSON lines.
        max_symbols: maximum number of tokens in a line; longer lines are rejected.
        ray: run on a Ray cluster, the one at RAY_ADDRESS or else this machine's cores.
        workers: number of processes, with --ray; defaults to the number of cores of this machine.
        with_specs: a Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The file is run.
    """
    from ._bulk_job import answer_all  # noqa: PLC0415 - an extra

    answer_all(
        *(bundle, inputs, out),
        nbest=nbest,
        beam_size=beam_size,
        text=text,
        max_symbols=max_symbols,
        workers=(workers or os.cpu_count() or 1) if ray else None,
        specs=with_specs,
    )

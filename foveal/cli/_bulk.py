"""`foveal bulk`: many files answered, each beside its name, and only those that are missing.

The work is in `_bulk_job`, which needs more packages than --help does.
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
    """Answer all lines of files into a folder; started again, only what is missing.

    Args:
        bundle: the folder of a model that `fit` made.
        inputs: files, URLs or patterns in quotes: a text on each line, or JSON objects (.jsonl); plain, gzip
            or zstd.
        out: a folder or URL: NAME.parquet, and NAME.rejects.jsonl for lines that have no answer.
        nbest: answers for each line, the best first.
        beam_size: candidates kept in search; 1 is greedy. By default as the model was fitted, or nbest.
        text: name of what is asked, in JSON lines.
        max_symbols: of a line; a longer one is rejected.
        ray: on a Ray cluster, that of RAY_ADDRESS or else this machine's cores.
        workers: processes that answer, with --ray; by default as many as this machine has cores.
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

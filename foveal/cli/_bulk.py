"""`foveal bulk`: predict many files, and on restart only the missing ones.

The work is in `_bulk_job`, which imports more packages than --help needs.
"""

import os
from pathlib import Path
from typing import Annotated, Literal

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
    engine: Literal["auto", "torch", "onnx"] = "auto",
    device: str = "auto",
) -> None:
    """Predict all lines of many files into a folder. A restart computes only the missing files.

    Args:
        bundle: The folder of a model that `foveal fit` saved.
        inputs: Files, URLs or quoted patterns: one text per line, or JSON objects (.jsonl); plain, gzip
            or zstd.
        out: The output folder or URL. It gets NAME.parquet, and NAME.rejects.jsonl for rejected lines.
        nbest: The number of answers for each line, best first.
        beam_size: The beam size; 1 is greedy search. Defaults to the model's setting, or to nbest.
        text: The name of the input field in JSON lines.
        max_symbols: The maximum number of tokens in a line. Longer lines are rejected.
        ray: Run on the Ray cluster at RAY_ADDRESS or, without this variable, on the cores of this machine.
        workers: The number of processes, with --ray. Defaults to the number of cores of this machine.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
        engine: The software that computes: torch, or onnx for ONNX Runtime. auto uses onnx if it is installed, the
            model has an export, and both give the same answers to examples of the run.
        device: The device to compute on: auto, cpu, cuda, cuda:1 or mps. auto uses a GPU if there is one. With --ray,
            the workers share the GPUs of the cluster.
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
        engine=engine,
        device=device,
    )

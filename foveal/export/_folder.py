"""Export of a bundle to a folder that runs without torch.

    manifest.json    format, version, task, and the size and SHA-256 of the other files
    model.json       tokenizers, search settings, calibration, limits, license and training data
    vocabulary.json  the tokens
    model.onnx       the graph, with the whole search
    selftest.jsonl   up to 200 inputs with the answers of the original
    model.plain      on request, all of this in one file for engines without ONNX Runtime
    encode.onnx, step.onnx   on request, the encoder and one step of the decoder, for a search of your own

The finished export answers its own test before it is kept: a folder whose answers differ is an error.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load as load_tensors

from .. import __version__
from ..bundles import load_bundle
from ..bundles._bundle import bundle_files
from ..bundles._manifest import seal_of
from ..data import Example
from ..errors import ExportError
from ..runtime._folder import FORMAT, MANIFEST, MODEL, SELF_TEST, VOCABULARY
from ..runtime._model import load as load_exported
from ..tasks import AbstractTask
from ._models import task_graph
from ._self_test import (
    MOST_LINES,
    answers_of_export,
    answers_of_task,
    difference,
    num_equal,
    portable,
)
from ._settings import about_data, task_settings, vocabulary_data
from ._step_graphs import step_graphs
from ._storage import Storage, stored
from .graphs._weights import Weights
from .plain import PLAIN, plain_body, plain_file

GRAPH = "model.onnx"
_UNFINISHED = ".unfinished"


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """How to export a model.

    `also` are spec classes of user-defined parts, `license` and `data` describe the weights and their training data;
    `plain` adds the plain model file, and `steps` the graphs of the encoder and of one step.
    """

    storage: Storage = "float32"
    plain: bool = False
    steps: bool = False
    license: str | None = None
    data: Sequence[str] = ()
    also: Sequence[type] = ()


class Exported(NamedTuple):
    """A finished export: its folder, the size of its graph in bytes, and how many tested examples have the answer of
    the original.
    """

    folder: Path
    size: int
    num_tested: int
    num_equal: int


def export_bundle(
    bundle: str | Path,
    out: str | Path,
    examples: Sequence[Example | str],
    options: ExportOptions | None = None,
) -> Exported:
    """Export a trained model to a folder that runs without torch.

    Args:
        bundle: The folder of the model.
        out: The folder to write, which must not exist or must be an earlier export.
        examples: Inputs for the self-test; the first 200 count.
        options: Storage of the weights, license and data.

    Returns:
        The folder and its size.

    Raises:
        ExportError: A part of the model has no export, the folder contains other files, there are no examples, or the
            export answers differently.

    Examples:
        >>> export_bundle("runs/ice", "ice.export", ["reykjavík"])            # doctest: +SKIP
    """
    bundle, out, options = Path(bundle), Path(out), options or ExportOptions()
    _check_out(out)
    task = load_bundle(bundle, also=options.also)
    if not examples:
        raise ExportError(
            f"{bundle}: expected inputs to test the export with, got none, and a folder without its training files has none. "
            f"Name a file with inputs: --check words.txt (examples=[...] in Python)."
        )
    given = [Example(each) if isinstance(each, str) else each for each in examples][:MOST_LINES]
    tested = [portable(task, each) for each in given]
    plain = _plain_body(task, bundle, options) if options.plain else None
    files = exported_files(task, bundle, options)
    unfinished = out.with_name(out.name + _UNFINISHED)
    if unfinished.exists():
        rmtree(unfinished)
    unfinished.mkdir(parents=True)
    _write(unfinished, files, task.spec.kind, bundle)
    exported = load_exported(unfinished)
    original = answers_of_task(task, exported, tested)
    own = answers_of_export(exported, tested)
    different = difference(original, own) if options.storage == "float32" else None
    if different is not None:
        raise ExportError(
            f"{bundle}: the export answers differently: {different}. Report this as a bug, with the spec of the model."
        )
    kept = original if options.storage == "float32" else own
    files[SELF_TEST] = "".join(f"{each.to_json()}\n" for each in kept).encode()
    if plain is not None:
        files[PLAIN] = plain_file(plain, kept)
    _write(unfinished, files, task.spec.kind, bundle)
    if out.exists():
        rmtree(out)
    unfinished.replace(out)
    return Exported(out, len(files[GRAPH]), len(tested), num_equal(original, own))


def exported_files(
    task: AbstractTask[Any], bundle: Path, options: ExportOptions
) -> dict[str, bytes]:
    """Return the files of an export, without the self-test and the manifest.

    Args:
        task: The loaded bundle.
        bundle: Its folder.
        options: Storage of the weights, license and data.

    Returns:
        The content of each file.

    Raises:
        ExportError: A part of the model has no export.
    """
    weights = _weights(bundle)
    graphs = {GRAPH: task_graph(task.spec, weights).model()}
    if options.steps:
        steps = step_graphs(task.spec, weights)
        graphs |= {f"{name}.onnx": graph for name, graph in steps._asdict().items()}
    model = {
        **task_settings(task),
        "storage": options.storage,
        **about_data(options.license, options.data),
    }
    return {
        MODEL: _json(model),
        VOCABULARY: _json(vocabulary_data(task)),
        **{
            name: stored(graph, options.storage).SerializeToString()
            for name, graph in graphs.items()
        },
    }


def _plain_body(task: AbstractTask[Any], bundle: Path, options: ExportOptions) -> bytes:
    return plain_body(task, _weights(bundle), options.storage, options.license, options.data)


def _weights(bundle: Path) -> Weights:
    file = next(path for path in bundle_files(bundle) if path.suffix == ".safetensors")
    found = load_tensors(file.read_bytes())
    # A bundle may store float16; models compute in float32.
    return Weights(
        {
            name: one.astype(np.float32) if one.dtype == np.float16 else one
            for name, one in found.items()
        }
    )


def _write(folder: Path, files: Mapping[str, bytes], task: str, bundle: Path) -> None:
    """Write files and their manifest."""
    manifest = {
        "format": FORMAT,
        "foveal": __version__,
        "task": task,
        "bundle": seal_of(bundle),
        "files": {name: _entry(content) for name, content in files.items()},
    }
    for name, content in {**files, MANIFEST: _json(manifest)}.items():
        (folder / name).write_bytes(content)


def _check_out(out: Path) -> None:
    """Refuse to replace a folder that is not an export."""
    if out.exists() and not (out.is_dir() and (out / GRAPH).is_file()) and any(out.iterdir()):
        raise ExportError(
            f"{out}: expected a new folder or an earlier export, got a folder with other files. Choose another --out."
        )


def _entry(content: bytes) -> Mapping[str, Any]:
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _json(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode()

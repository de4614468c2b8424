"""A bundle: a task in a folder, ready to be used anywhere.

    spec.json             what the task was built from, tokenisers and model included
    vocabulary.json       symbols, labels, lengths
    weights.safetensors   the model's weights
    calibration.json      from probabilities to confidence
    manifest.json         size and sha256 of the others

All of it is JSON and tensors: loading executes no code. A bundle that is torn, changed, or of
another version is refused with a `BundleError`.
"""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from .. import __version__
from ..errors import BundleError, SightlineError
from ..sealing import MANIFEST, read_sealed, write_sealed
from ..specs import from_json, to_json
from ._calibration import Calibration
from ._specs import TaskSpec
from ._task import AbstractTask
from ._vocabularies import Vocabularies

FORMAT = 1  # raised when an older version could not read what this one writes
_SPEC, _VOCABULARY, _WEIGHTS, _CALIBRATION = (
    "spec.json",
    "vocabulary.json",
    "weights.safetensors",
    "calibration.json",
)


def bundle_files(folder: str | Path) -> tuple[Path, ...]:
    """The files that a bundle in a folder has."""
    names = (_SPEC, _VOCABULARY, _WEIGHTS, _CALIBRATION, MANIFEST)
    return tuple(Path(folder) / name for name in names)


def save_bundle(task: AbstractTask[Any], folder: str | Path) -> None:
    """Write a task into a folder, which may hold other files. Interrupted at any moment, the folder
    has the bundle that it had before or the new one, whole.
    """
    weights = {
        name: tensor.detach().cpu().contiguous() for name, tensor in task.model.state_dict().items()
    }
    files = {
        _SPEC: to_json(task.spec).encode(),
        _VOCABULARY: _to_json(task.vocabularies.to_data()),
        _WEIGHTS: save(weights),
        _CALIBRATION: _to_json(task.calibration.to_data()),
    }
    write_sealed(Path(folder), files, {"format": FORMAT, "sightline": __version__})


def load_bundle(folder: str | Path) -> AbstractTask[Any]:
    """The task in a folder, verified, in evaluation mode on the CPU."""
    folder = Path(folder)
    files = read_sealed(folder, (_SPEC, _VOCABULARY, _WEIGHTS, _CALIBRATION), (FORMAT,)).files
    try:
        spec: TaskSpec = from_json(TaskSpec, files[_SPEC].decode())
        task: AbstractTask[Any] = spec.build(Vocabularies.from_data(json.loads(files[_VOCABULARY])))
        task.calibration = Calibration.from_data(json.loads(files[_CALIBRATION]))
        weights = load(files[_WEIGHTS])
    except (SightlineError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BundleError(
            f"{folder}: whole, but not what this version can read: {error}. "
            f"Use the version of sightline that wrote it; manifest.json has its number."
        ) from error
    _take_weights(folder, task.model, weights)
    task.model.eval()
    return task


def _take_weights(folder: Path, model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Give a model its weights, all of them and no others."""
    own = model.state_dict()
    for name in sorted({*own, *weights}):
        sides = [
            f"{tuple(side[name].shape)} of {side[name].dtype}" if name in side else "nothing"
            for side in (own, weights)
        ]
        if sides[0] != sides[1]:
            raise BundleError(
                f"{folder}: the weights are not those of the model in {_SPEC}: {name} is {sides[1]}, "
                f"expected {sides[0]}. Files of different bundles have been mixed; restore them."
            )
    model.load_state_dict(weights)


def _to_json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, indent=1).encode()

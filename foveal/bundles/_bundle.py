"""A bundle: a task in a folder, ready to be used anywhere.

    spec.json             what the task was built from, tokenizers and model included
    vocabulary.json       symbols, labels, lengths
    weights.safetensors   the model's weights
    calibration.json      from probabilities to confidence
    manifest.json         size and sha256 of the others

All of it is JSON and tensors: loading executes no code, opens no connection and reads no other
file. A bundle that is torn, changed, or of another version is refused with a `BundleError`. So is
every other bundle that cannot be used: loading takes time and memory in proportion to the size of
the files, whatever they say.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from .. import __version__
from ..data.vocabularies._vocabularies import Vocabularies
from ..errors import BundleError
from ..metrics._calibration import Calibration
from ..specs import to_json
from ..specs._reading import OutsideError, from_data, parse_json
from ..tasks._specs import TaskSpec
from ..tasks.base._task import AbstractTask
from ._manifest import MANIFEST, read_sealed, write_sealed
from ._outline import outline

FORMAT = 1  # raised when an older version could not read what this one writes
_SPEC, _VOCABULARY, _WEIGHTS, _CALIBRATION = (
    "spec.json",
    "vocabulary.json",
    "weights.safetensors",
    "calibration.json",
)
# The most bytes of JSON that are read beyond the size of the weights. Parsed JSON takes up to 25
# times the memory of its text; a vocabulary of 100,000 words has about 1.5 MB.
_MOST_JSON = 8 << 20
_MOST_HEADER = 1 << 20  # bytes: names and shapes of some 8,000 tensors
# The square of a weight must be finite in float32. Trained weights are far below this.
_MOST_WEIGHT = 1e18
_MOST_REASON = 400  # characters of an error's text that are repeated in ours


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
        _SPEC: to_json(task.spec, TaskSpec).encode(),
        _VOCABULARY: _to_json(task.vocabularies.to_data()),
        _WEIGHTS: save(weights),
        _CALIBRATION: _to_json(task.calibration.to_data()),
    }
    _check_sizes(Path(folder), {name: len(content) for name, content in files.items()})
    write_sealed(Path(folder), files, {"format": FORMAT, "foveal": __version__})


def load_bundle(folder: str | Path, *, also: Sequence[type] = ()) -> AbstractTask[Any]:
    """The task in a folder, verified, in evaluation mode on the CPU.

    Args:
        folder: the folder.
        also: spec classes of parts that are not from this package, for a model that has some.

    Raises:
        BundleError: the folder has no bundle, or one that is damaged, malformed, or not finite.
    """
    folder = Path(folder)
    try:
        return _load(folder, also)
    except BundleError:
        raise
    except OutsideError as error:
        raise BundleError(f"{folder}: {error}") from error
    except Exception as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise BundleError(
            f"{folder}: whole, but not what this version can read: {lines[0][:_MOST_REASON].rstrip('.')}. "
            f"Use the version of foveal that wrote it; manifest.json has its number."
        ) from error


def _load(folder: Path, also: Sequence[type]) -> AbstractTask[Any]:
    files = read_sealed(folder, (_SPEC, _VOCABULARY, _WEIGHTS, _CALIBRATION), (FORMAT,)).files
    _check_sizes(folder, {name: len(content) for name, content in files.items()})
    described = _from_json(files, _SPEC)
    _check_self_contained(folder, described)
    spec: TaskSpec = from_data(TaskSpec, described, also=also)
    vocabularies = Vocabularies.from_data(_from_json(files, _VOCABULARY))
    calibration = Calibration.from_data(_from_json(files, _CALIBRATION))
    _check_header(folder, files[_WEIGHTS])
    weights = load(files.pop(_WEIGHTS))
    task: AbstractTask[Any] = outline(lambda: spec.build(vocabularies), len(weights))
    _check_weights(folder, task.model.state_dict(keep_vars=True), weights)
    if _is_complete(task, weights):
        # Copied, since a tensor of torch's own allocator is aligned and a part of a file is not.
        own = {name: weights.pop(name).clone() for name in list(weights)}
        task.model.load_state_dict(own, assign=True)
    else:
        task = spec.build(vocabularies)
        task.model.load_state_dict(weights)
    task.calibration = calibration
    task.model.eval()
    return task


def _check_sizes(folder: Path, sizes: Mapping[str, int]) -> None:
    """Refuse JSON that is much larger than the weights it describes."""
    most = _MOST_JSON + sizes[_WEIGHTS]
    for name in (_SPEC, _VOCABULARY, _CALIBRATION):
        if sizes[name] > most:
            raise BundleError(
                f"{folder}: {name} has {sizes[name]:,} bytes, expected at most {most:,} next to "
                f"{sizes[_WEIGHTS]:,} bytes of weights. Use a smaller vocabulary."
            )


def _check_header(folder: Path, weights: bytes) -> None:
    """Refuse weights in so many pieces that taking them apart would cost more than using them."""
    size = int.from_bytes(weights[:8], "little")  # how a file of safetensors begins
    if size > _MOST_HEADER:
        raise BundleError(
            f"{folder}: the header of {_WEIGHTS} has {size:,} bytes, expected at most "
            f"{_MOST_HEADER:,}. Restore the file."
        )


def _check_self_contained(folder: Path, data: Any, path: str = "") -> None:
    """Refuse a spec that names weights elsewhere: in another folder, or on the network."""
    for name, value in data.items() if isinstance(data, dict) else ():
        where = f"{path}.{name}" if path else name
        if name == "weights" and value is not None:
            raise BundleError(
                f"{folder}: {_SPEC} asks for weights from elsewhere: {where} is "
                f"{str(value)[:_MOST_REASON]!r}, expected none, since a bundle has its own weights. "
                f"Save the task with save_bundle."
            )
        _check_self_contained(folder, value, where)


def _check_weights(
    folder: Path, expected: Mapping[str, Tensor], weights: Mapping[str, Tensor]
) -> None:
    """Refuse weights that are not those of the model, or not numbers that a model can use."""
    for name in sorted({*expected, *weights}):
        sides = [
            f"{tuple(side[name].shape)} of {side[name].dtype}" if name in side else "nothing"
            for side in (expected, weights)
        ]
        if sides[0] != sides[1]:
            raise BundleError(
                f"{folder}: the weights are not those of the model in {_SPEC}: {name[:_MOST_REASON]} "
                f"is {sides[1]}, expected {sides[0]}. Files of different bundles have been mixed; "
                f"restore them."
            )
    for name, tensor in weights.items():
        if tensor.is_floating_point() and tensor.numel():
            least, most = (float(end) for end in torch.aminmax(tensor))
            if not (least >= -_MOST_WEIGHT and most <= _MOST_WEIGHT):  # also false for NaN
                raise BundleError(
                    f"{folder}: the weights {name} go from {least:g} to {most:g}, expected finite "
                    f"numbers up to {_MOST_WEIGHT:g}. The model has diverged; train it again, with a "
                    f"lower learning rate."
                )


def _is_complete(task: AbstractTask[Any], weights: Mapping[str, Tensor]) -> bool:
    """Whether the weights are all that the model's outline lacks: no buffers that building computes."""
    return all(name in weights for name, _ in task.model.named_buffers())


def _from_json(files: Mapping[str, bytes], name: str) -> Any:
    return parse_json(files[name].decode(), name)


def _to_json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, indent=1).encode()

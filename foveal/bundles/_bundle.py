"""A bundle: a trained task saved in a folder, ready to load anywhere.

    spec.json             the spec of the task, including tokenizers and model
    vocabulary.json       tokens, labels, lengths
    weights.safetensors   the weights of the model, as float32 or, in half of the size, as float16
    calibration.json      the mapping from probabilities to confidence
    manifest.json         size and SHA-256 of the other files

A bundle contains only JSON and tensors: loading executes no code, opens no connection and reads no other file.
`load_bundle` raises `BundleError` for a bundle that is incomplete, changed, from another version or unusable for any
other reason. Loading takes time and memory in proportion to the size of the files, even if their content is malicious.
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
from ..devices import resolve_device
from ..errors import BundleError, ValueRangeError
from ..metrics._calibration import Calibration
from ..shelf import model_folder
from ..specs import to_json
from ..specs._reading import OutsideError, from_data, parse_json
from ..tasks._specs import TaskSpec
from ..tasks.base._task import AbstractTask
from ._manifest import MANIFEST, read_sealed, write_sealed
from ._outline import outline

FORMAT = 1  # increased when older versions cannot read new bundles
_SPEC, _VOCABULARY, _WEIGHTS, _CALIBRATION = (
    "spec.json",
    "vocabulary.json",
    "weights.safetensors",
    "calibration.json",
)
# Maximum number of JSON bytes in addition to the size of the weights. Parsed JSON takes up to 25 times the memory of
# its text; a vocabulary of 100,000 words has about 1.5 MB.
_MOST_JSON = 8 << 20
_MOST_HEADER = 1 << 20  # bytes: names and shapes of about 8,000 tensors
# The square of a weight must be finite in float32. Trained weights are far below this.
_MOST_WEIGHT = 1e18
_MOST_REASON = 400  # characters of another error's message that our message quotes


def bundle_files(folder: str | Path) -> tuple[Path, ...]:
    """Return the paths of the files of a bundle."""
    names = (_SPEC, _VOCABULARY, _WEIGHTS, _CALIBRATION, MANIFEST)
    return tuple(Path(folder) / name for name in names)


def save_bundle(task: AbstractTask[Any], folder: str | Path, *, half: bool = False) -> None:
    """Write a task into a folder, which may contain other files. Saving is atomic: after an interruption at any
    moment, the folder contains either the complete old bundle or the complete new one.

    Args:
        task: Task to save.
        folder: Folder of the bundle, which is created if necessary.
        half: Round the weights to float16, which halves the size. Loading converts them to float32, so the model
            computes as before, with the rounded weights.

    Raises:
        ValueRangeError: A weight is too large for float16.
    """
    weights = {
        name: tensor.detach().cpu().contiguous() for name, tensor in task.model.state_dict().items()
    }
    if half:
        weights = {name: _rounded(name, tensor) for name, tensor in weights.items()}
    files = {
        _SPEC: to_json(task.spec, TaskSpec).encode(),
        _VOCABULARY: _to_json(task.vocabularies.to_data()),
        _WEIGHTS: save(weights),
        _CALIBRATION: _to_json(task.calibration.to_data()),
    }
    _check_sizes(Path(folder), {name: len(content) for name, content in files.items()})
    write_sealed(Path(folder), files, {"format": FORMAT, "foveal": __version__})


def load_bundle(
    folder: str | Path, *, also: Sequence[type] = (), device: str | torch.device = "cpu"
) -> AbstractTask[Any]:
    """Load and verify the task in a folder. It is in evaluation mode.

    Args:
        folder: Folder of the bundle, or the name of a model on a shelf; see `foveal.shelf`.
        also: Spec classes of user-defined parts, for a model that has some.
        device: The device of the model: auto, cpu, cuda, cuda:N or mps. It may differ from the device of the training.

    Returns:
        The task, ready to predict.

    Raises:
        BundleError: The folder has no bundle, or one that is damaged, malformed, or not finite.
        DeviceError: This machine does not have the device.
    """
    folder, used = model_folder(folder), resolve_device(device)
    try:
        task = _load(folder, also)
    except BundleError:
        raise
    except OutsideError as error:
        raise BundleError(f"{folder}: {error}") from error
    except Exception as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise BundleError(
            f"{folder}: this version cannot read the model: {lines[0][:_MOST_REASON].rstrip('.')}. "
            f"Use the version of foveal that wrote it; see manifest.json."
        ) from error
    task.model.to(used)
    return task


def _load(folder: Path, also: Sequence[type]) -> AbstractTask[Any]:
    files = read_sealed(folder, (_SPEC, _VOCABULARY, _WEIGHTS, _CALIBRATION), (FORMAT,)).files
    _check_sizes(folder, {name: len(content) for name, content in files.items()})
    described = _from_json(files, _SPEC)
    _check_self_contained(folder, described)
    spec: TaskSpec = from_data(TaskSpec, described, also=also)
    vocabularies = Vocabularies.from_data(_from_json(files, _VOCABULARY))
    calibration = Calibration.from_data(_from_json(files, _CALIBRATION))
    _check_header(folder, files[_WEIGHTS])
    weights = _widened(load(files.pop(_WEIGHTS)))
    task: AbstractTask[Any] = outline(lambda: spec.build(vocabularies), len(weights))
    _check_weights(folder, task.model.state_dict(keep_vars=True), weights)
    if _is_complete(task, weights):
        # Clone, because torch aligns its own allocations and a part of a file is not aligned.
        own = {name: weights.pop(name).clone() for name in list(weights)}
        task.model.load_state_dict(own, assign=True)
    else:
        task = spec.build(vocabularies)
        task.model.load_state_dict(weights)
    task.calibration = calibration
    task.model.eval()
    return task


def _rounded(name: str, tensor: Tensor) -> Tensor:
    """Round float32 weights to float16; other tensors stay as they are."""
    if tensor.dtype != torch.float32:
        return tensor
    small = tensor.half()
    if not torch.isfinite(small).all():
        raise ValueRangeError(
            f"save_bundle: the weights {name} have magnitudes up to {tensor.abs().max():g}, expected at most "
            f"{torch.finfo(torch.float16).max:g} for float16. Save with half=False."
        )
    return small


def _widened(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert float16 weights to float32, in which all models compute."""
    return {
        name: tensor.float() if tensor.dtype == torch.float16 else tensor
        for name, tensor in weights.items()
    }


def _check_sizes(folder: Path, sizes: Mapping[str, int]) -> None:
    """Refuse JSON files that are much larger than the weights that they describe."""
    most = _MOST_JSON + sizes[_WEIGHTS]
    for name in (_SPEC, _VOCABULARY, _CALIBRATION):
        if sizes[name] > most:
            raise BundleError(
                f"{folder}: {name} has {sizes[name]:,} bytes, expected at most {most:,} next to "
                f"{sizes[_WEIGHTS]:,} bytes of weights. Use a smaller vocabulary."
            )


def _check_header(folder: Path, weights: bytes) -> None:
    """Refuse weights in too many small tensors, because parsing would cost more than using them."""
    size = int.from_bytes(weights[:8], "little")  # the first field of a safetensors file
    if size > _MOST_HEADER:
        raise BundleError(
            f"{folder}: the header of {_WEIGHTS} has {size:,} bytes, expected at most "
            f"{_MOST_HEADER:,}. Restore the file."
        )


def _check_self_contained(folder: Path, data: Any, path: str = "") -> None:
    """Refuse a spec that names weights in another folder or on the network."""
    for name, value in data.items() if isinstance(data, dict) else ():
        where = f"{path}.{name}" if path else name
        if name == "weights" and value is not None:
            raise BundleError(
                f"{folder}: {_SPEC} refers to external weights: {where} is "
                f"{str(value)[:_MOST_REASON]!r}, expected none, because a bundle contains its "
                f"weights. Save the task with save_bundle."
            )
        _check_self_contained(folder, value, where)


def _check_weights(
    folder: Path, expected: Mapping[str, Tensor], weights: Mapping[str, Tensor]
) -> None:
    """Refuse weights that do not match the model, or values that a model cannot use."""
    for name in sorted({*expected, *weights}):
        sides = [
            f"{tuple(side[name].shape)} of {side[name].dtype}" if name in side else "nothing"
            for side in (expected, weights)
        ]
        if sides[0] != sides[1]:
            raise BundleError(
                f"{folder}: the weights do not fit the model in {_SPEC}: {name[:_MOST_REASON]} is "
                f"{sides[1]}, expected {sides[0]}. The folder contains files of different bundles; "
                f"restore them."
            )
    for name, tensor in weights.items():
        if tensor.is_floating_point() and tensor.numel():
            least, most = (float(end) for end in torch.aminmax(tensor))
            if not (least >= -_MOST_WEIGHT and most <= _MOST_WEIGHT):  # also false for NaN
                raise BundleError(
                    f"{folder}: the weights {name} range from {least:g} to {most:g}, expected finite "
                    f"numbers up to {_MOST_WEIGHT:g}. The model has diverged; train it again with a "
                    f"lower learning rate."
                )


def _is_complete(task: AbstractTask[Any], weights: Mapping[str, Tensor]) -> bool:
    """Return True if the weights fill the whole outline of the model: no buffer is computed while building."""
    return all(name in weights for name, _ in task.model.named_buffers())


def _from_json(files: Mapping[str, bytes], name: str) -> Any:
    return parse_json(files[name].decode(), name)


def _to_json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, indent=1).encode()

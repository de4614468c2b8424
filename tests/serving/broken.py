"""Bundles that nobody should serve: valid checksums, but contents that break a model."""

from pathlib import Path

import torch
from safetensors.torch import load, save

from foveal.bundles._manifest import write_sealed
from tests.tasks.stored import BUNDLES

_FILES = ("spec.json", "vocabulary.json", "weights.safetensors", "calibration.json")


def files_of(kind: str) -> dict[str, bytes]:
    """Read the files of a stored bundle."""
    folder = BUNDLES / "0.1.0" / kind
    return {name: (folder / name).read_bytes() for name in _FILES}


def write_bundle(folder: Path, files: dict[str, bytes], about: str = "test") -> None:
    """Write files as a bundle with valid checksums, and replace the existing bundle."""
    write_sealed(folder, files, {"format": 1, "foveal": about})


def nan_weights(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the bundle of a training run that diverged."""
    weights = load(files["weights.safetensors"])
    bad = {
        name: torch.full_like(value, torch.nan) if value.is_floating_point() else value
        for name, value in weights.items()
    }
    return files | {"weights.safetensors": save(bad)}


def nan_calibration(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return a bundle with valid weights and a calibration of NaNs."""
    return files | {"calibration.json": b'[{"temperature": NaN, "others": null}]'}


def nested_calibration(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return a bundle with JSON that is nested more deeply than Python can read."""
    return files | {"calibration.json": b"[" * 100_000 + b"]" * 100_000}

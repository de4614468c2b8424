"""The index of a shelf: names, licenses, scores and checksums of its models.

SHELF/index.json           {"format": 1, "models": [...]}
SHELF/models/NAME/...      the files of a model: a bundle, and what belongs to it
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import BundleError

INDEX, MODELS = "index.json", "models"
CARD, CARD_DATA = "CARD.md", "card.json"
FORMAT = 1
_MOST_BYTES = 8 << 20  # of an index; ours has a few kilobytes for each model


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelScore:
    """The main score of a model on its test set, with a confidence interval."""

    metric: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFile:
    """A file of a model."""

    path: str  # below the folder of the model, with /
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShelfModel:
    """A model of a shelf: what it does, its license, its score and its files."""

    name: str
    version: str
    about: str
    task: str
    license: str
    files: tuple[ModelFile, ...]
    folder: Path
    score: ModelScore | None = None
    languages: tuple[str, ...] = ()
    words_per_second: float | None = None  # on one core

    @property
    def size(self) -> int:
        """The total size of all files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def card(self) -> Path | None:
        """The path of the model card, if the model has one."""
        found = any(file.path == CARD for file in self.files)
        return self.folder / CARD if found else None

    def changed(self) -> list[str]:
        """Compare the files with the index.

        Returns:
            The files that are missing or differ, each with the reason.
        """
        return list(self._reasons())

    def _reasons(self) -> Iterator[str]:
        for file in self.files:
            path = self.folder / file.path
            if path.is_symlink() or not path.is_file():
                yield f"{file.path} is missing"
            elif path.stat().st_size != file.size:
                yield f"{file.path} has {path.stat().st_size:,} bytes, expected {file.size:,}"
            elif hashlib.sha256(path.read_bytes()).hexdigest() != file.sha256:
                yield f"{file.path} has a wrong sha256 checksum"

    def verify(self) -> None:
        """Compare all files with the checksums of the index.

        Raises:
            BundleError: A file is missing or has changed.
        """
        reasons = self.changed()
        if reasons:
            raise BundleError(
                f"{self.name}: the model in {self.folder} is damaged: {reasons[0]}. Install its package again, or add the "
                f"model again with foveal models add."
            )


def read_index(folder: Path) -> list[ShelfModel]:
    """Return the models of a shelf.

    Args:
        folder: The folder with the index.

    Returns:
        The models, in the order of the index.

    Raises:
        BundleError: The index is malformed.
    """
    path = folder / INDEX
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BundleError(f"{path}: expected at most {_MOST_BYTES:,} bytes. Restore the file.")
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise BundleError(
                f"{path}: written in format {data['format']!r}, expected {FORMAT}. Use a newer version of foveal."
            )
        return [model_of(row, folder / MODELS / str(row["name"])) for row in data["models"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(
            f"{path}: expected the index of a shelf, got {type(error).__name__}: {error}. Install the package of the shelf "
            f"again."
        ) from None


def index_json(models: Sequence[ShelfModel]) -> str:
    """Return the content of an index."""
    rows = []
    for model in models:
        row = asdict(model)
        del row["folder"]
        rows.append(row)
    return json.dumps({"format": FORMAT, "models": rows}, ensure_ascii=False, indent=1) + "\n"


def files_of(folder: Path, names: Sequence[str]) -> tuple[ModelFile, ...]:
    """Return the size and the checksum of files in a folder."""
    found = []
    for name in sorted(names):
        content = (folder / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        found.append(ModelFile(path=name, size=len(content), sha256=digest))
    return tuple(found)


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a model: one path component of letters, digits, dots and hyphens."""
    return text[:1].isalnum() and all(c.isalnum() or c in "._-" for c in text)


def model_of(row: Mapping[str, Any], folder: Path) -> ShelfModel:
    """Return the model of a row of an index.

    Args:
        row: The fields of a model, except its folder.
        folder: The folder of its files.

    Returns:
        The model.

    Raises:
        ValueError: A name is invalid. Missing and unknown fields raise other errors of Python.
    """
    name = row["name"]
    if not (isinstance(name, str) and is_name(name)):
        raise ValueError(f"the name of a model is {str(name)[:80]!r}")
    files = tuple(ModelFile(**file) for file in row["files"])
    for file in files:
        parts = PurePosixPath(file.path).parts
        if not parts or any(part in ("..", "/") for part in parts) or "\\" in file.path:
            raise ValueError(f"a file of {name} is named {file.path[:80]!r}")
    score = None if row["score"] is None else ModelScore(**row["score"])
    rest = {**row, "files": files, "score": score, "languages": tuple(row["languages"])}
    return ShelfModel(**rest, folder=folder)

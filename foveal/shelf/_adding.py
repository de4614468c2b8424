"""Add models to the shelf of the user: from a folder, from an archive, or from an address with a checksum."""

import hashlib
import io
import json
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ..datasets._download import MAX_SIZE, check_address, download
from ..datasets._unpacking import unpack
from ..errors import BundleError, size_text
from ._finding import user_shelf
from ._index import (
    CARD,
    CARD_DATA,
    INDEX,
    MODELS,
    ShelfModel,
    files_of,
    index_json,
    is_name,
    model_of,
    read_index,
)

MANIFEST = "manifest.json"  # of a bundle
EXAMPLE = "example.png"  # an input of a model that reads images
_ARCHIVES = (".zip", ".tar.gz", ".tgz")
# The files of a model: its bundle, its card, its lexicon and its export.
_FILES = (
    *("spec.json", "vocabulary.json", "weights.safetensors", "calibration.json", MANIFEST),
    *(CARD, CARD_DATA, EXAMPLE, "mistake.svg", "LICENSE.txt"),
    *("lexicon.txt", "lexicon.txt.gz", "lexicon.txt.zst"),
)
_FOLDERS = ("export",)
_PREFIXES = ("https://", "http://")


def is_address(source: str) -> bool:
    """Return whether a source is on the network."""
    return source.startswith(_PREFIXES)


@contextmanager
def opened(source: str, sha256: str | None) -> Iterator[Path]:
    """Yield the folder of a model: the given folder, or the unpacked archive, which is then deleted.

    Args:
        source: A folder, a .zip or .tar.gz file, or the address of one.
        sha256: The checksum of the archive, which an address needs.

    Raises:
        BundleError: The archive has another checksum, or contains no model.
    """
    if is_address(source):
        check_address(source)
        if sha256 is None:
            raise BundleError(
                f"{source}: expected the checksum of the archive, got none; a download without it could be any file. Add "
                f"--sha256, from the page that names the address."
            )
        content, name = download(source), PurePosixPath(source).name
    elif Path(source).is_dir():
        if sha256 is not None:
            raise BundleError(
                f"{source}: --sha256 is the checksum of an archive, got a folder. Remove the option; the manifest of the "
                f"folder has its checksums."
            )
        yield Path(source)
        return
    elif Path(source).is_file() and source.endswith(_ARCHIVES):
        content, name = Path(source).read_bytes(), Path(source).name
    else:
        raise BundleError(
            f"{source}: expected a folder, an archive ({', '.join(_ARCHIVES)}) or an https address. Check the path."
        )
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256.lower():
        raise BundleError(
            f"{source}: the checksum is {found}, expected {sha256}. The file is damaged or another version: get it again. "
            f"Nothing was added."
        )
    with tempfile.TemporaryDirectory(prefix="foveal-model-") as made:
        yield _unpacked(content, name, Path(made), source)


def carded(model: ShelfModel) -> ShelfModel:
    """Return a model with the description of its card, if its folder has a card. The name stays."""
    path = model.folder / CARD_DATA
    if not path.is_file():
        return model
    try:
        row = json.loads(path.read_text(encoding="utf-8"))["shelf"]
        found = model_of({**row, "name": model.name, "files": []}, model.folder)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BundleError(
            f"{path}: expected the data of a model card, got {type(error).__name__}: {error}. Remove the file."
        ) from None
    return found


def add_model(model: ShelfModel) -> ShelfModel:
    """Copy a model into the shelf of the user. A model of the same name on that shelf is replaced.

    Args:
        model: The description of the model, with the folder to copy from.

    Returns:
        The model on the shelf.

    Raises:
        BundleError: The name is invalid, or the shelf of the user is damaged.
    """
    name, root = model.name, user_shelf()
    if not is_name(name):
        raise BundleError(
            f"the name of a model must begin with a letter or a digit and consist of letters, digits, dots, hyphens and "
            f"underscores, got {name[:80]!r}. Choose another --name."
        )
    others = [one for one in _own_models(root) if one.name != name]
    target = root / MODELS / name
    unfinished = target.with_name(f".{name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    names = model_files(model.folder)
    for path in names:
        copied = unfinished / path
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(model.folder / path, copied)
    model = replace(model, files=files_of(unfinished, names), folder=target)
    shutil.rmtree(target, ignore_errors=True)
    unfinished.replace(target)
    _write_index(root, [*others, model])
    return model


def remove_model(name: str) -> Path:
    """Delete a model from the shelf of the user.

    Args:
        name: The name of a model that the user added.

    Returns:
        The folder that was deleted.

    Raises:
        BundleError: The user added no model of this name.
    """
    root = user_shelf()
    models = _own_models(root)
    if name not in (one.name for one in models):
        raise BundleError(
            f"{name}: {root} has no model of this name. Only models that `foveal models add` added can be removed; "
            f"uninstall a package with pip."
        )
    _write_index(root, [one for one in models if one.name != name])
    shutil.rmtree(root / MODELS / name)
    return root / MODELS / name


def _own_models(root: Path) -> list[ShelfModel]:
    return read_index(root) if (root / INDEX).is_file() else []


def _write_index(root: Path, models: list[ShelfModel]) -> None:
    """Replace the index in one step."""
    new = root / f"{INDEX}.new"
    new.write_text(index_json(sorted(models, key=lambda one: one.name)), encoding="utf-8")
    new.replace(root / INDEX)


def model_files(folder: Path) -> list[str]:
    """Return the files of a folder that belong to a model: no checkpoints, and no logs of a run."""
    found = [name for name in _FILES if (folder / name).is_file()]
    for inner in _FOLDERS:
        paths = sorted((folder / inner).rglob("*"))
        found += [one.relative_to(folder).as_posix() for one in paths if one.is_file()]
    return found


def _unpacked(content: bytes, name: str, into: Path, source: str) -> Path:
    """Unpack an archive, and return the folder of its model."""
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                _check_size(sum(one.file_size for one in archive.infolist()), source)
                archive.extractall(into)
        else:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
                _check_size(sum(one.size for one in archive), source)
                unpack(archive, into)
    except (zipfile.BadZipFile, tarfile.TarError, OSError) as error:
        raise BundleError(
            f"{source}: expected a .zip or .tar.gz archive, got a file that cannot be unpacked ({error}). Nothing was added."
        ) from None
    # An export has a manifest too, one level below its model.
    found = sorted(into.rglob(MANIFEST), key=lambda path: (len(path.parts), path))
    if not found:
        raise BundleError(f"{source}: the archive has no {MANIFEST}, so it contains no model.")
    return found[0].parent


def _check_size(size: int, source: str) -> None:
    if size > MAX_SIZE:
        raise BundleError(
            f"{source}: unpacks to {size_text(size)}, expected at most {size_text(MAX_SIZE)}. Nothing was added."
        )

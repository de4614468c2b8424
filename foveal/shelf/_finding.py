"""Find models by name: in the folder of the user first, then in installed packages."""

import os
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from ..errors import BundleError
from ._index import INDEX, MODELS, ShelfModel, is_name, read_index

GROUP = "foveal.shelves"
VARIABLE = "FOVEAL_MODELS"
PACKAGE = "foveal-shelf"


def user_shelf() -> Path:
    """Return the folder of the models that a user added, which need not exist.

    The environment variable `FOVEAL_MODELS` names it. Without the variable it is `foveal/shelf` in the data folder of the
    user: `$XDG_DATA_HOME`, or `~/.local/share`.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "foveal" / "shelf"


def shelf() -> dict[str, ShelfModel]:
    """Return all models that commands accept by name.

    If two shelves have a model of one name, the model that the user added counts, or else the model of the package
    whose name is first in the alphabet.

    Returns:
        The models by name.

    Raises:
        BundleError: The index of a shelf is malformed.

    Examples:
        >>> sorted(shelf())                                                     # doctest: +SKIP
        ['g2p-en', 'g2p-is', 'tagger-en']
    """
    found: dict[str, ShelfModel] = {}
    for folder in _folders():
        for model in read_index(folder):
            found.setdefault(model.name, model)
    return found


def model_folder(name: str | Path) -> Path:
    """Return the folder of a model. A path that exists, or that has several components, stays as it is.

    Args:
        name: A path, or the name of a model on a shelf, whose checksums are compared.

    Returns:
        The folder.

    Raises:
        BundleError: There is neither a folder nor a model of this name, or a file of the model has changed.
    """
    path, text = Path(name), str(name)
    if path.exists() or path.is_absolute() or len(path.parts) != 1 or not is_name(text):
        return path
    models = shelf()
    if text in models:
        models[text].verify()
        return models[text].folder
    near = get_close_matches(text, models, n=3)
    if near:
        advice = f"Did you mean {' or '.join(near)}? `foveal models` lists all."
    elif models:
        advice = "`foveal models` lists the models with a name."
    else:
        advice = f"No shelf is installed; `pip install {PACKAGE}` adds pretrained models."
    raise BundleError(
        f"{text}: this folder does not exist, and there is no model of this name. Use the --out folder of foveal fit, or "
        f"the name of a model. {advice}"
    )


def folder_for_pages(folder: Path) -> Path:
    """Return the folder to write pages about a model into: its own folder, or the current one for a model of a shelf,
    whose files have checksums.
    """
    is_on_shelf = folder.parent.name == MODELS and (folder.parent.parent / INDEX).is_file()
    return Path() if is_on_shelf else folder


def _folders() -> Iterator[Path]:
    """Yield the folders of all shelves. The packages are located, not imported."""
    if (user_shelf() / INDEX).is_file():
        yield user_shelf()
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError):
            spec = None
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        folders = [Path(place) for place in places if (Path(place) / INDEX).is_file()]
        if not folders:
            raise BundleError(
                f"the entry point {point.name} of {GROUP} names {point.value!r}, expected an installed package with "
                f"{INDEX}. Install the package of the shelf again."
            )
        yield folders[0]

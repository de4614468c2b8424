"""Locate the folder of the public data sets, which contains one folder for each data set."""

import os
from pathlib import Path

from ..errors import DataError

VARIABLE = "FOVEAL_DATA"


def data_folder() -> Path:
    """Return the folder of the public data sets, which need not exist.

    The environment variable `FOVEAL_DATA` names it. Without the variable it is `foveal/data` in the cache
    folder of the user: `$XDG_CACHE_HOME`, or `~/.cache`.

    Returns:
        The absolute path of the folder.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "foveal" / "data"


def data_file(name: str) -> Path:
    """Return the path of a file of a data set.

    Args:
        name: Data set and file, for example `scan/tasks_train_simple.txt.gz`.

    Returns:
        The path of an existing file.

    Raises:
        DataError: The file is not in the data folder; the message contains the command that downloads it.
    """
    path = data_folder() / name
    if not path.exists():
        raise DataError(f"data not found at {path}. {advice(path)}")
    return path


def advice(path: str | Path) -> str | None:
    """Return the command that downloads a missing file.

    Args:
        path: Path of the missing file.

    Returns:
        A sentence with the command; None if the path is not below the data folder.

    Examples:
        >>> advice(data_folder() / "scan/tasks_train_simple.txt.gz")
        'Download it: foveal data get scan'
    """
    try:
        within = Path(path).absolute().relative_to(data_folder())
    except ValueError:
        return None
    return f"Download it: foveal data get {within.parts[0]}" if within.parts else None

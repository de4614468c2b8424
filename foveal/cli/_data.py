"""`foveal data`: the samples that ship with the package, and the public data sets of recipes and examples."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from ..datasets import data_folder
from ..datasets._catalog import DataSet, catalog, data_set
from ..datasets._fetching import fetch
from ..datasets._samples import NAMES, copy_samples
from ..errors import DataError, SpecError, size_text
from ._bars import counting_bar


def command(
    action: Positional[Literal["list", "get", "samples"]] = "list",
    names: Positional[tuple[str, ...]] = (),
    /,
    *,
    folders: Annotated[tuple[Path, ...], arg(name="from")] = (),
    out: Path = Path("samples"),
) -> None:
    """List public data sets with source, license, size and checksum, download them, or copy the samples.

    Without arguments, the command lists every data set that recipes and examples read. Data sets are stored in the
    data folder: FOVEAL_DATA, or ~/.cache/foveal/data by default.

    Args:
        action: `list NAME` prints the files of a data set with their checksums, `get NAME` downloads a data set into
            the data folder, and `samples` copies the samples that ship with the package.
        names: The names of data sets or samples. `get all` downloads all data sets.
        folders: With `get`: read the files from these folders instead of the network. A folder contains the files,
            or a folder with the name of the data set, or is a checkout of the source.
        out: With `samples`: the folder to copy into, one folder per sample.
    """
    if folders and action != "get":
        raise SpecError(
            f"--from: only `foveal data get` accepts this option, got {action}. Remove it."
        )
    if action == "samples":
        for folder in copy_samples(names, out):
            _say(f"{folder}  {' '.join(sorted(path.name for path in folder.iterdir()))}")
    elif action == "get":
        _get(names, folders)
    elif names:
        for name in names:
            _list_files(data_set(name))
    else:
        _list()


def _list() -> None:
    """List all data sets."""
    for each in catalog().values():
        _say(f"{each.name}: {each.about}")
        _say(f"  source   {_source(each)}")
        _say(f"  license  {each.license}")
        _say(f"  size     {size_text(each.size)} in {len(each.files)} files, sha256 {each.sha256}")
        _say(f"  here     {_state(each)}")
    _say(f"\ndata folder: {data_folder()} (set FOVEAL_DATA to change it)")
    _say(
        f"samples of the package: {', '.join(NAMES)} (copy them with foveal data samples --out FOLDER)"
    )


def _list_files(wanted: DataSet) -> None:
    """List the files of one data set with their checksums."""
    _say(
        f"{wanted.name}: {wanted.about}\n  source   {_source(wanted)}\n  license  {wanted.license}"
    )
    _say(f"  cite     {wanted.citation}\n  here     {_state(wanted)}")
    if wanted.by_hand:
        _say(f"  by hand  {wanted.by_hand}")
    changed = {file.path for file in wanted.changed()}
    missing = {file.path for file in wanted.missing()}
    for file in wanted.files:
        state = "changed" if file.path in changed else "missing" if file.path in missing else "ok"
        _say(f"  {file.sha256}  {file.size:>10,} bytes  {state:<7}  {file.path}")


def _get(names: tuple[str, ...], folders: tuple[Path, ...]) -> None:
    if not names:
        raise SpecError(
            "foveal data get: expected the name of a data set, got none. `foveal data` lists them."
        )
    for folder in folders:
        if not folder.is_dir():
            raise SpecError(f"--from {folder}: this folder does not exist. Check the path.")
    wanted = [*catalog().values()] if names == ("all",) else [data_set(name) for name in names]
    failures: list[str] = []
    for each in wanted:
        try:
            with counting_bar(each.name, each.size) as advance:
                written = fetch(each, folders, advance)
        except DataError as error:
            failures.append(str(error))
            continue
        kept = len(each.files) - len(written)
        _say(
            f"{each.folder}: {len(written)} files written, {kept} already there; all checksums match"
        )
    if failures:
        raise DataError("\n".join(failures))


def _source(each: DataSet) -> str:
    return f"{each.source}, commit {each.revision}" if each.revision else each.source


def _state(each: DataSet) -> str:
    missing = len(each.missing())
    if not missing:
        return f"yes, in {each.folder}"
    lacking = "no" if missing == len(each.files) else f"{missing} files are missing"
    return f"{lacking}; foveal data get {each.name}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")

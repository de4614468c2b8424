"""`foveal models`: the models that every command accepts by name."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from ..errors import BundleError, SpecError, size_text
from ..shelf import ShelfModel, shelf
from ..shelf._adding import add_model, carded, is_address, opened, remove_model
from ..shelf._finding import PACKAGE, user_shelf

_COLUMNS = ("name", "size", "score", "words/s", "license", "about")


def command(
    action: Positional[Literal["list", "verify", "card", "path", "add", "remove"]] = "list",
    names: Positional[tuple[str, ...]] = (),
    /,
    *,
    name: str | None = None,
    sha256: str | None = None,
    license_of_weights: str = "not stated",
) -> None:
    """List, verify and add the models that every command accepts by name.

    The models come from installed packages such as foveal-shelf, and from the shelf of the user: FOVEAL_MODELS, or
    ~/.local/share/foveal/shelf by default. Only `add` with an address uses the network.

    Args:
        action: `list` prints all models, `verify` compares their files with the checksums of the index, `card` prints the
            card of a model, `path` prints its folder, `add` copies models into the shelf of the user, and `remove` deletes
            them there.
        names: The names of models; `verify` without names verifies all. For `add`: a folder, a .zip or .tar.gz file, or
            an https address of one.
        name: With `add`: the name of the model on the shelf. Defaults to the name of the folder or file.
        sha256: With `add`: the checksum of the archive. An address needs it.
        license_of_weights: With `add`: the license of the model, if its card has none.
    """
    if action != "add" and (name is not None or sha256 is not None):
        raise SpecError(
            f"--name, --sha256: only `foveal models add` accepts these options, got {action}. Remove them."
        )
    if action in ("add", "remove") and not names:
        raise SpecError(f"foveal models {action}: expected a model, got none. Name one.")
    if action == "add":
        _add(names, name, sha256, license_of_weights)
    elif action == "remove":
        for each in names:
            _say(f"{remove_model(each)}: removed")
    elif action == "list":
        _list(_chosen(names))
    elif action == "verify":
        _verify(_chosen(names))
    else:
        for model in _chosen(names):
            _say(str(model.folder) if action == "path" else _card(model))


def _chosen(names: Sequence[str]) -> list[ShelfModel]:
    models = shelf()
    unknown = [name for name in names if name not in models]
    if unknown:
        known = ", ".join(models) or f"none; pip install {PACKAGE} adds some"
        raise BundleError(f"{unknown[0]}: there is no model of this name. Models: {known}.")
    return [models[name] for name in names] if names else list(models.values())


def _list(models: Sequence[ShelfModel]) -> None:
    """Print a table of models, and where more come from."""
    rows = [_COLUMNS, *map(_row, models)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS) - 1)]
    for row in rows if models else ():
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        _say("  ".join([*cells, row[-1]]).rstrip())
    total = size_text(sum(model.size for model in models))
    end = f"\n{len(models)} models, {total}. " if models else f"No models. pip install {PACKAGE}. "
    _say(f"{end}Your shelf: {user_shelf()} (set FOVEAL_MODELS to change it)")


def _row(model: ShelfModel) -> tuple[str, ...]:
    score = model.score
    shown = "" if score is None else f"{score.metric} {score.value:.1f}"
    speed = "" if model.words_per_second is None else f"{model.words_per_second:,.0f}"
    return (model.name, size_text(model.size), shown, speed, model.license, model.about)


def _verify(models: Iterable[ShelfModel]) -> None:
    """Compare checksums, print a line for each model, and fail if a file has changed."""
    damaged = list[str]()
    for model in models:
        reasons = model.changed()
        _say(
            f"{model.name}: {reasons[0] if reasons else f'{len(model.files)} files, all checksums match'}"
        )
        damaged += [model.name] if reasons else []
    if damaged:
        raise BundleError(
            f"damaged: {', '.join(damaged)}. Install the package again, or add the models again."
        )


def _card(model: ShelfModel) -> str:
    if model.card is None:
        return f"{model.name}: {model.about}; this model has no card."
    return model.card.read_text(encoding="utf-8").rstrip()


def _add(sources: Sequence[str], name: str | None, sha256: str | None, license_name: str) -> None:
    from ..bundles import load_bundle  # noqa: PLC0415 - slow, and only here

    if len(sources) > 1 and (name is not None or sha256 is not None):
        raise SpecError(
            f"--name, --sha256: expected one model with these options, got {len(sources)}. Add models one by one."
        )
    for source in sources:
        with opened(source, sha256) as folder:
            task = load_bundle(folder)  # compares the checksums of the bundle
            model = ShelfModel(
                name=name or _name_of(source),
                version="0",
                about=f"added from {source}",
                task=task.spec.kind,
                license=license_name,
                files=(),
                folder=folder,
            )
            model = add_model(carded(model))
        _say(f"{model.folder}: {size_text(model.size)}; to use it: foveal predict {model.name}")


def _name_of(source: str) -> str:
    last = (
        source.rstrip("/").rpartition("/")[2] if is_address(source) else Path(source).resolve().name
    )
    for ending in (".zip", ".tar.gz", ".tgz"):
        last = last.removesuffix(ending)
    return last


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")

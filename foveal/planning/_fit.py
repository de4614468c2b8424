"""fit: train a task from files or rows in one call."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console

from ..bundles import load_bundle
from ..data.formats._rows import Rows, read_rows
from ..data.formats._tables import ROLES
from ..devices import resolve_device
from ..errors import SpecError
from ..specs import to_json
from ..tasks import AbstractTask
from ..training import Display
from ..training.checkpoints._lock import locked
from ._drafting import Asked, draft_run, given_settings
from ._signs import waiting

_SHORT = ("attention", "minutes", "seed", "threads")  # settings that the command has options for


def fit(
    train: Any,
    dev: Any = None,
    out: Path | str | None = None,
    *,
    quiet: bool = False,
    device: str | torch.device = "auto",
    **settings: Any,
) -> AbstractTask[Any]:
    """Train a model on files or rows, and return it ready to predict.

    `fit` infers the task, the tokenization, the sizes and the length of training from the examples, like the
    command `foveal fit`, and prints the inferred settings and the progress of training to the standard error.

    Args:
        train: Training examples: the path of a file, a list of paths, or rows. Rows are pairs
            `(source, target)`, dicts, `Example`s, a pandas frame or a Hugging Face dataset.
        dev: Validation examples, given in the same way; by default, a tenth of the training examples is held
            out.
        out: The folder of the run. If it contains an interrupted run of the same examples and settings, `fit`
            resumes it. By default, the run is in a temporary folder, which is deleted at the end.
        quiet: Print nothing.
        device: The device to train on: auto, cpu, cuda, cuda:N or mps. auto uses a GPU if there is one. The returned
            task is on the same device.
        **settings: Any setting of `foveal fit --set`, with two underscores in place of each dot:
            `encoder__num_layers=2`. `attention`, `minutes`, `seed` and `threads` are the options of the command. The
            columns of tables and rows are `train__source`, `train__target` and so on.

    Returns:
        The task with its best weights, in evaluation mode.

    Raises:
        DataError: A file or a row cannot be read.
        SpecError: A setting does not exist, or its value has another type.
        DeviceError: This machine does not have the device.

    Examples:
        >>> words = [(a + b, f"{a} {b}") for a in "abcd" for b in "abcd"]
        >>> task = fit(words, steps=2, encoder__hidden_size=8, seed=1, quiet=True)
        >>> task.spec.model.encoder.hidden_size
        8
    """
    used = resolve_device(device)
    texts = {name.replace("__", "."): value for name, value in settings.items()}
    short = {name: texts.pop(name, None) for name in _SHORT}
    given = given_settings([f"{path}={_text(value)}" for path, value in texts.items()], **short)
    console = Console(highlight=False, stderr=True, quiet=quiet)
    with ExitStack() as stack:
        if out is None:
            out = stack.enter_context(TemporaryDirectory(prefix="foveal-"))
        folder = Path(out)
        asked = Asked(*_examples(train, dev, texts), (), folder, None, given)
        draft = draft_run(console, asked)
        lock = stack.enter_context(locked(folder))
        draft.check_folder(folder, fresh=False)
        draft.save(folder)
        with waiting(console, "building the vocabulary") as first_word:
            draft.planned.run.fit(
                folder,
                listeners=(first_word, Display(console)),
                lock=lock,
                measure_threads=True,
                device=used,
            )
        return load_bundle(folder, device=used)


def _examples(
    train: Any, dev: Any, texts: Mapping[str, Any]
) -> tuple[Sequence[str] | Rows, Sequence[str] | Rows]:
    """Return training and validation examples, as paths or rows."""
    files, dev_files = _paths(train), () if dev is None else _paths(dev)
    if files is not None:
        return files, read_rows(dev) if dev_files is None else dev_files
    given = {path: value for path, value in texts.items() if path.startswith("train.")}
    for path, value in given.items():
        if path.removeprefix("train.") not in ROLES or not isinstance(value, str | None):
            raise SpecError(
                f"{path}={value!r}: unknown setting for rows, expected the name of a column for one "
                f"of {', '.join(f'train.{role}' for role in ROLES)}."
            )
    roles = {path.removeprefix("train."): value for path, value in given.items()}
    return read_rows(train, roles), read_rows(dev, roles) if dev_files is None else dev_files


def _paths(given: Any) -> tuple[str, ...] | None:
    """Return files as the command takes them; None for rows."""
    if isinstance(given, str | Path):
        return (str(given),)
    if (
        isinstance(given, list | tuple)
        and given
        and all(isinstance(one, str | Path) for one in given)
    ):
        return tuple(map(str, given))
    return None


def _text(value: Any) -> str:
    """Format a value for `--set`."""
    if isinstance(value, str):
        return value
    if value is None:
        return "none"
    return to_json(value) if dataclasses.is_dataclass(value) else json.dumps(value)

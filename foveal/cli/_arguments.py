"""The arguments of a command as `--help` shows them.

tyro derives the arguments from the signature and the docstring of a command. This module adds a placeholder for each
value (`--dev FILE ...`), hides defaults that a user cannot type, and joins the lines of a description.
"""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tyro.conf import DisallowNone, arg

from ..errors import ValueRangeError
from ..shelf import model_folder
from ..shelf._index import is_name

# Parameter -> placeholder of its value. Other values are shown by their type: INT, FLOAT, {tsv,jsonl}.
PLACEHOLDERS = {
    "against": "MODEL",
    "attention": "KIND",
    "budget": "TIME",
    "bundle": "MODEL",
    "certificate": "FILE",
    "check": "FILE",
    "data": "TEXT",
    "dev": "FILE",
    "device": "DEVICE",
    "features": "FEATURES",
    "files": "FILE",
    "folders": "FOLDER",
    "gold": "FILE",
    "host": "ADDRESS",
    "inputs": "FILE",
    "key": "FILE",
    "known": "FILE",
    "license_of_weights": "TEXT",
    "name": "NAME",
    "names": "NAME",
    "others": "MODEL",
    "out": "PATH",
    "over": "PATH=VALUES",
    "page": "FILE",
    "prefix": "TEXT",
    "proxies": "ADDRESSES",
    "recipe": "FILE:FUNCTION",
    "replicas": "NUMBER",
    "reverse": "MODEL",
    "run": "RUN",
    "runs": "MODEL",
    "second": "TEXT",
    "settings_given": "PATH=VALUE",
    "sha256": "CHECKSUM",
    "start_from": "MODEL",
    "test": "FILE",
    "text": "TEXT",
    "tokens": "FILE",
    "train": "FILE",
    "unit": "CELL:PART:NUMBER",
    "with_specs": "FILE",
}
_MODELS = ("MODEL", "RUN")  # placeholders of folders of models
_REPEATED = ("over", "settings_given")  # given once for each value
CONFIGURATION = (DisallowNone,)  # no `--seed None`


def documented(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose signature has placeholders and whose docstring has one line for each argument.

    Args:
        command: The function `command` of the module of a command.

    Returns:
        A function with the same behavior, for `tyro.cli`.
    """
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    shown = [_shown(each, hints[each.name]) for each in signature.parameters.values()]

    def run(*args: Any, **options: Any) -> None:
        given = signature.bind(*args, **options)
        _check_given(given)
        _find_models(given)
        command(*given.args, **given.kwargs)

    vars(run)["__signature__"] = signature.replace(parameters=shown)
    run.__annotations__ = {each.name: each.annotation for each in shown}
    run.__doc__ = re.sub(r"\n {8,}", " ", inspect.getdoc(command) or "")
    return run


def _check_given(bound: inspect.BoundArguments) -> None:
    """Refuse an empty list where a command needs one value or more; tyro accepts it."""
    for name, parameter in bound.signature.parameters.items():
        if parameter.default is parameter.empty and bound.arguments[name] == ():
            placeholder = PLACEHOLDERS[name]
            raise ValueRangeError(
                f"expected at least one {placeholder}, got none. Add --help to see the arguments."
            )


def _find_models(bound: inspect.BoundArguments) -> None:
    """Replace the names of models on a shelf by their folders, in every argument that takes the folder of a model."""
    for name, value in bound.arguments.items():
        if PLACEHOLDERS.get(name) in _MODELS:
            bound.arguments[name] = _found(value)


def _found(value: Any) -> Any:
    match value:
        case Path():
            return model_folder(value)
        case str():
            served, equals, folder = value.partition("=")  # `foveal serve NAME=MODEL`
            if not equals:
                return str(model_folder(value))
            return f"{served}={model_folder(folder)}" if is_name(served) else value
        case tuple():
            return tuple(map(_found, value))
        case _:
            return value


def _shown(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    is_optional = parameter.default is not inspect.Parameter.empty
    placeholder = PLACEHOLDERS.get(parameter.name)
    if placeholder is not None and _is_bool(hint):
        placeholder = None
    if placeholder is not None and parameter.name not in _REPEATED and _is_tuple(hint):
        placeholder += " ..."
    if placeholder is not None and parameter.kind is parameter.POSITIONAL_ONLY and is_optional:
        placeholder = f"[{placeholder}]"
    return parameter.replace(
        annotation=Annotated[hint, arg(metavar=placeholder, help_behavior_hint=_default)]
    )


def _default(value: str) -> str:
    """Return the hint on a default; the description explains a default that is not a value."""
    return "" if value in ("", "''", "None", "False") else f"(default: {value})"


def _is_bool(hint: Any) -> bool:
    return (get_args(hint)[0] if get_origin(hint) is Annotated else hint) is bool


def _is_tuple(hint: Any) -> bool:
    return get_origin(get_args(hint)[0] if get_origin(hint) is Annotated else hint) is tuple

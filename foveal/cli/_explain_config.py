"""`foveal explain-config`: every setting of a run, with its origin and its reason."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from tyro.conf import Positional, arg

from ..errors import SpecError
from ..planning._choices import Planned, load_plan
from ..shelf._index import CARD_DATA
from ..specs import settings
from ..specs._files import specs_in

_LONGEST = 60  # characters of a printed value: a trained tokenizer has thousands
_INDENT = 4


class Explained(NamedTuple):
    """A setting with its value, the origin of the value, and the reason for it."""

    path: str
    value: str
    origin: str
    reason: str


def command(
    run: Positional[Path],
    /,
    *,
    changed: bool = False,
    as_json: Annotated[bool, arg(name="json")] = False,
    with_specs: Path | None = None,
) -> None:
    """Print every setting of a run with its origin and the reason for its value.

    Each setting is printed as path=value, the form that `foveal fit --set` accepts.

    Args:
        run: The folder of a run.
        changed: Print only the settings that differ from their defaults.
        as_json: Print a JSON list, with values in full length.
        with_specs: A Python file that defines the parts of the model that are not from foveal, as
            SPECS = (MySpec,). The command runs the file.
    """
    if (run / CARD_DATA).exists():
        raise SpecError(
            f"{run.name}: expected the folder of a run, got a pretrained model, which ships without its run. "
            f"`foveal models card {run.name}` describes its data and training."
        )
    planned = load_plan(run, also=specs_in(with_specs))
    found = [one for one in _explained(planned) if not changed or one.origin != "default"]
    if as_json:
        data = [one._asdict() for one in found]
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
        return
    console = Console(highlight=False)
    for one in found:
        # Never wrapped or cut, at any terminal width: users copy these names.
        line = f"{one.path}={_short(one.value)}  ({one.origin})"
        console.print(line, markup=False, soft_wrap=True)
        console.print(Padding(Text(one.reason), (0, 0, 0, _INDENT)))


def _explained(planned: Planned) -> Iterator[Explained]:
    for setting in settings(planned.run):
        choice = planned.choice_of(setting.path)
        if choice is None:
            yield Explained(setting.path, setting.text, "default", setting.about)
        else:
            yield Explained(setting.path, setting.text, choice.origin, choice.reason)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:40]}… ({len(text):,} characters)"

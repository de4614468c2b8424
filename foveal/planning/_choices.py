"""Choices: settings of a run that differ from their defaults, with their origin and reason."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from ..errors import SpecError
from ..specs import from_json, to_json
from ..specs._reading import OutsideError
from ..training._run import RUN, Run
from ..training.checkpoints._whole import replace_text

CHOICES = "choices.json"
Origin = Literal["data", "command", "recipe"]


class Choice(NamedTuple):
    """One setting, or a group of settings, that was chosen."""

    path: str
    origin: Origin  # the kind or the size of the data, the user's command, or a recipe
    reason: str


class Planned(NamedTuple):
    """A run and the choices that led to it."""

    run: Run
    choices: tuple[Choice, ...]

    def choice_of(self, path: str) -> Choice | None:
        """Return the choice that determines the setting at a path, if any. If a choice selected a spec, the settings
        of that spec are its defaults unless they were chosen too.
        """
        return next((choice for choice in reversed(self.choices) if choice.path == path), None)

    def save(self, folder: Path) -> None:
        """Write the run and its choices into the folder of the run."""
        folder.mkdir(parents=True, exist_ok=True)
        replace_text(folder / RUN, to_json(self.run) + "\n")
        rows = [choice._asdict() for choice in self.choices]
        text = json.dumps(rows, ensure_ascii=False, indent=1)
        replace_text(folder / CHOICES, text + "\n")


def load_plan(folder: Path, *, also: Sequence[type] = ()) -> Planned:
    """Read a plan that `Planned.save` wrote; a run without choices has none. For `also` see `load_bundle`."""
    try:
        run = from_json(Run, (folder / RUN).read_text(encoding="utf-8"), also=also)
        written = folder / CHOICES
        rows = json.loads(written.read_text(encoding="utf-8")) if written.exists() else []
        return Planned(run, tuple(Choice(**row) for row in rows))
    except FileNotFoundError:
        raise SpecError(
            f"{folder}: {f'{RUN} is missing' if folder.is_dir() else 'this folder does not exist'}, expected the "
            f"folder of a run. Use the --out folder of foveal fit."
        ) from None
    except OutsideError as error:
        raise OutsideError(f"{folder}: {error}") from error
    except (ValueError, TypeError) as error:
        raise SpecError(
            f"{folder}: cannot read {RUN} or {CHOICES}: {error} Restore the files, or train again."
        ) from error


def chosen(choices: Sequence[Choice], path: str, origin: Origin, reason: str) -> tuple[Choice, ...]:
    """Add a choice, replacing an earlier choice for the same path."""
    others = (choice for choice in choices if choice.path != path)
    return (*others, Choice(path, origin, reason))

"""`sightline explain-config`: every setting of a run, where it came from, and why."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional

from ..specs import settings
from ..training import load_plan


def command(run: Positional[Path], /, *, changed: bool = False) -> None:
    """List every setting of a run with its value, where the value came from, and why.

    Args:
        run: the folder of a run.
        changed: leave out what is as it is by default.
    """
    planned = load_plan(run)
    table = Table("setting", "value", "from", "why", box=None, padding=(0, 2, 0, 0))
    for setting in settings(planned.run):
        choice = planned.choice_of(setting.path)
        if changed and choice is None:
            continue
        origin = "default" if choice is None else choice.origin
        why = setting.about if choice is None else choice.reason
        table.add_row(*map(escape, (setting.path, _short(setting.text), origin, why)))
    Console(highlight=False).print(table)


def _short(text: str) -> str:
    """A value that fits into a column: a trained tokeniser is thousands of characters."""
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text):,} characters)"

"""Check that a resumed run has the settings that it started with."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import CheckpointError

# Settings that may change when a run is resumed: its length, and settings that do not change a step.
FREE = frozenset(
    f"training.{name}"
    for name in (
        "epochs",
        "steps",
        "minutes",
        "patience",
        "evaluate_every",
        "validation_size",
        "checkpoint_seconds",
        "log_every",
        "threads",
    )
)


def check_unchanged(then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise `CheckpointError` if settings differ that must not change when a run is resumed."""
    earlier, later = dict(_leaves("", then)), dict(_leaves("", now))
    changed = [
        f"{path} was {_text(earlier, path)} and is {_text(later, path)}"
        for path in sorted({*earlier, *later})
        if path not in FREE and earlier.get(path) != later.get(path)
    ]
    if changed:
        raise CheckpointError(
            f"the folder contains a run with other settings: {'; '.join(changed)}. To resume it, use "
            f"the settings it was started with. Otherwise use another --out, or start again in this "
            f"folder with --fresh (resume=False in Python)."
        )


def _leaves(path: str, data: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from _leaves(f"{path}.{name}" if path else name, value)
    else:
        yield path, data


def _text(leaves: Mapping[str, Any], path: str) -> str:
    text = repr(leaves[path]) if path in leaves else "not there"
    return text if len(text) <= 60 else f"{text[:59]}…"
